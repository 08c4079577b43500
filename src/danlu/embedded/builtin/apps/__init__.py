"""Kinds of `apps`."""
