"""Kinds of `autoscaling`."""
