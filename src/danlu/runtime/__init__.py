"""Controller machinery, the same for built-in controllers and for Danlu's kinds, in both modes.

An informer's event becomes a `Request` (a name, nothing else) in a `Queue`; a `Controller`'s workers take requests
out and reconcile; the `Manager` shares informers between controllers and starts and stops everything.
Imports `danlu.client` and `danlu.meta`, nothing above them.
"""

from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.moments import Clock, utc_now
from danlu.runtime.queue import Queue
from danlu.runtime.reconcile import Creation, EventNote, Outcome, Refusal, Request
from danlu.runtime.recorder import EventRecorder

__all__ = [
    "Clock",
    "Controller",
    "Creation",
    "EventNote",
    "EventRecorder",
    "Manager",
    "Outcome",
    "Queue",
    "Refusal",
    "Request",
    "utc_now",
]
