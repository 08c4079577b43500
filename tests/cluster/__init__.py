"""A real Kubernetes on this machine for the tests; `scripts/test-cluster` is its command."""
