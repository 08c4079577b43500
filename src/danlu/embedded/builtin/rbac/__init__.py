"""Kinds of `rbac.authorization.k8s.io`."""
