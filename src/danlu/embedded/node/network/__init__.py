"""Addresses, names, services, and whose socket it is that answers."""
