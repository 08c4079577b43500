"""Kinds of `discovery.k8s.io`."""
