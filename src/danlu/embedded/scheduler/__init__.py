"""The scheduler: queue, filters, scores, preemption and gangs.

    eventhandlers → schedulingqueue → placement (trial → filters → scores) → binder
                      │        └ refused → preemption → placementreport
                      └ pods of a policy's scheduler → gangscheduling → binder, placementreport
                          (gangs → placement; refused → shortage, quotareclaim)

All but `scheduler`, `binder` and `placementreport` is pure and synchronous: it works on the `cache`, without I/O. What
gangs and lanes there are is a `policy`'s to say; this package knows no kind that has them.
"""
