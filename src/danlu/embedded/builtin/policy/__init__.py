"""Kinds of `policy`."""
