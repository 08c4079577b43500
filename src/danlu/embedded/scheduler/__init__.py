"""The scheduler: queue, filters, scores, preemption and gangs.

    queue → placing (trial → filters → scores) → binding
                 └ refused → preemption → reporting

All but `scheduler`, `binding` and `reporting` is pure and synchronous: it works on the `cache` and does no I/O.
"""
