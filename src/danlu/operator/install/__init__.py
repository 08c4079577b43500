"""Danlu put on a cluster: what is installed, looked at before anything is changed, then applied and waited for.

options      what can be chosen
manifests    the objects of an installation, made from the options; `addons`: those for GPU nodes
checks       what has to be right before anything is changed
plan         what an installation would change, found by the server's own dry run
applying     the plan carried out; waiting until it works, with the reason shown
removal      taking it away again, and what is kept

One source: `danlu install` applies these objects, `scripts/generate-deploy` writes them to `deploy/` for `kubectl apply
-k` and turns them into the templates of the Helm chart. Nothing here is imported by the operator itself.
"""
