"""Ingresses on this machine: a reverse proxy on loopback, by host and path, with TLS, once there is one.

routes        Ingresses in, which service answers for a host and path out; pure
ingressproxy  one request, passed on to a pod behind the service
controller    keeps the routes, the listeners and the certificates, and says in status where each Ingress answers
"""
