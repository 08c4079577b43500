"""Kinds of `batch`."""
