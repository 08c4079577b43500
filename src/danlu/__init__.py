"""Danlu 丹炉: build and train AI models, on a laptop or on a Kubernetes cluster, with the same YAML."""

__version__ = "0.1.0"
__all__ = ["__version__"]
