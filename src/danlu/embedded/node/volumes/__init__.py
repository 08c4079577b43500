"""Volumes as folders of this machine."""
