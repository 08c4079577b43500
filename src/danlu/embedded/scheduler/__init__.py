"""The scheduler: queue, filters, scores, preemption and gangs.

    queue → placing (trial → filters → scores) → binding
         │       └ refused → preemption → reporting
         └ pods of a policy's scheduler → gangwork (gangs → placing; refused → shortage, reclaim) → binding, reporting

All but `scheduler`, `binding` and `reporting` is pure and synchronous: it works on the `cache` and does no I/O. What
gangs and lanes there are is a `policy`'s to say; this package knows no kind that has them.
"""
