"""Kinds of `networking.k8s.io`."""
