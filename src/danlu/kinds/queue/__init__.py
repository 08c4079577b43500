"""`kubectl get queue`: a share of the cluster, with a quota, a priority and those who may use it."""
