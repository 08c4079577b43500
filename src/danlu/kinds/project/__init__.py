"""`kubectl get project`: a namespace that people work in: its quota and its default scheduler."""
