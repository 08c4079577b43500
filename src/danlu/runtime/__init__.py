"""Controller machinery, the same for built-in controllers and for Danlu's kinds, in both modes.

A kind's controller is a `Reconciler` (what it watches, what it sees, what should be) in a `Shell`, which does the rest.
Below: an informer's event becomes a `Request` (a name, nothing else) in a `Queue`; a `Controller`'s workers take
requests out and reconcile; the `Manager` shares informers between controllers and starts and stops everything.
Imports `danlu.client` and `danlu.meta`, nothing above them.
"""

from danlu.meta.clock import Clock, utc_now
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import CreatedNote, Creation, EventNote, Outcome, Refusal, Request
from danlu.runtime.reconciler import Children, ChildrenReconciler, Context, Reconciler, Watch
from danlu.runtime.recorder import EventRecorder
from danlu.runtime.shell import Shell, add_controller, bring_in
from danlu.runtime.workqueue import Queue

__all__ = [
    "Children",
    "ChildrenReconciler",
    "Clock",
    "Context",
    "Controller",
    "CreatedNote",
    "Creation",
    "EventNote",
    "EventRecorder",
    "Manager",
    "Outcome",
    "Queue",
    "Reconciler",
    "Refusal",
    "Request",
    "Shell",
    "Watch",
    "add_controller",
    "bring_in",
    "utc_now",
]
