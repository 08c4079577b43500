"""Kinds of `authorization.k8s.io` and `authentication.k8s.io`: questions, answered and never stored."""
