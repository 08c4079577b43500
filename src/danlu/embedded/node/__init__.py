"""The kubelet: runs the pods that are bound to it as processes of this machine. README.md tells how.

It talks to the API through `danlu.client` alone. Modules that the shim imports use the standard library only.
"""
