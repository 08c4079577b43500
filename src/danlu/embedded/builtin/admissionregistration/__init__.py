"""Kinds of `admissionregistration.k8s.io`: webhooks, and policies in CEL."""
