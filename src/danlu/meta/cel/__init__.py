"""CEL, the expression language of Kubernetes' validation rules: parsed, checked against a schema, compiled to closures.

Written here because rules run on every write of a custom kind: an evaluation takes microseconds, and nothing is
imported that a server without rules would have to pay for.

`parser` → `checker` (types known from the schema) → `evaluator` (closures) over `library` (functions);
`rules` ties them to x-kubernetes-validations.
"""

from __future__ import annotations
