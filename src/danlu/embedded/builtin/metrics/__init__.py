"""Kinds of `metrics.k8s.io`."""
