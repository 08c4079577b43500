"""apps/v1 Deployment: rolls a change of the template out over replica sets, one for each revision.

`controller` does the I/O, `rollout` the arithmetic (pure), `revisions` the names and annotations of replica sets.
"""

from danlu.embedded.controllers.deployment.controller import make

__all__ = ["make"]
