"""Who is asking, and may they: certificates, tokens, authentication and RBAC.

Invariants: secrets lie in files with mode 0600 in the data directory; `cryptography` is imported only where something
must be signed or made; every refusal is worded as Kubernetes words it (`forbidden.py`).
"""
