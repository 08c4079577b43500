"""Danlu put on a cluster: what is installed, looked at before anything is changed, then applied and waited for.

options        what can be chosen
manifests      the objects of an installation, made from the options; `addons`: those for GPU nodes
preflight      what has to be right before anything is changed
plan           what an installation would change, found by the server's own dry run
planexecution  the plan carried out, and what was chosen remembered
readiness      waiting until it works, with the reason shown
removal        taking it away again, and what is kept
kustomize      the same objects as folders for `kubectl apply -k`
chart          the same objects as the templates of a Helm chart

One source: `danlu install` applies the objects of `manifests`, `scripts/generate-deploy` writes deploy/ from them.
Nothing here is imported by the operator itself.
"""
