"""autoscaling HorizontalPodAutoscaler: as many replicas as keep a metric near its target.

controller  scale and metrics in, another number of replicas and a status out, every fifteen seconds
podusage    what pods use, and what that asks for
pace        how fast the number may change, and what it waits for
"""

from danlu.embedded.controllers.autoscaling.controller import make

__all__ = ["make"]
