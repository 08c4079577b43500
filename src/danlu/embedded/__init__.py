"""A Kubernetes in one process that has never heard of training.

`cluster.py` starts the parts in order; they know each other only through the API. Nothing here imports `danlu.kinds`.
"""
