"""Sockets and HTTP that know nothing of Kubernetes: servers with limits, and clients over connections that others make.

Used by whatever listens or passes requests on (the API server, the console). It imports no other part of danlu; what
calls the Kubernetes API belongs into `client`.
"""
