"""Living with other operators of the kinds that we look after, where the platform is its own installer (`danlu up`).

    known        which operators look after kinds of ours, and by what they are recognised
    findings     what is seen of one: pure; objects in, findings out
    definitions  definitions of ours that were deleted or replaced come back
    watching     the controller: sets guards that nobody answers for aside, and tells what it found

On a cluster none of this runs: whoever installed there decides (`danlu install` refuses beside another operator and
never takes definitions over unasked), and an operator that may rewrite webhooks and definitions would be a danger.
"""
