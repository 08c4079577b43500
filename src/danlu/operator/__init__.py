"""The platform's kinds on any Kubernetes: the program behind `danlu operator`, and how it is installed there.

`run` puts the parts together, `supervision` takes in each kind as soon as it is served, `access` is the way to the API
(limits, counts, what is told when it fails), `health` and `metrics` answer the cluster, `logs` writes what people read.
Imports `danlu.kinds` and what lies below; the embedded Kubernetes is not known here.
"""
