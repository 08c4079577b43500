"""PyTorchJob of kubeflow.org/v1: torch on a master and workers. Read `README.md` first."""
