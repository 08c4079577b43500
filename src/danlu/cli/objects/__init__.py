"""Everyday commands on the objects of a cluster; what they do lies in `danlu.resources`."""
