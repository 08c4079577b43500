"""The platform: one folder per custom kind, named by the word typed after `kubectl get`.

Knows nothing of `embedded`: a kind's controller talks to whatever Kubernetes it is given a client for. Kind folders do
not import each other; what job kinds share lies in `_training`.
"""
