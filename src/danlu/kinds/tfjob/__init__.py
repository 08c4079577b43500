"""TFJob of kubeflow.org/v1: TensorFlow's distributed strategies, through TF_CONFIG. Read `README.md` first."""
