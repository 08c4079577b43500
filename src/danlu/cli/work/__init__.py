"""Commands for those who work on a cluster: the embedded one or any other."""
