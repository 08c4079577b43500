"""What the jobs of kubeflow.org/v1 share: fields, labels, conditions, and the life of a job as its users know it."""
