"""Kinds of `storage.k8s.io`."""
