"""Commands for those who look after a cluster."""
