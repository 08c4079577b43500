"""Every pod stays five minutes on a node that is not ready or cannot be reached, unless it says otherwise."""

from __future__ import annotations

from danlu.embedded.apiserver.admission import CREATE, UPDATE, Attributes, Handler

_SECONDS = 300
_KEYS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class DefaultTolerations(Handler):
    resources = frozenset({"pods"})

    def mutate(self, a: Attributes) -> None:
        if a.subresource or a.obj is None or a.operation not in (CREATE, UPDATE):
            return
        spec = a.obj.setdefault("spec", {})
        tolerations = spec.get("tolerations") or []
        missing = [
            key
            for key in _KEYS
            if not any(
                toleration.get("key", "") in (key, "") and toleration.get("effect", "") in ("NoExecute", "")
                for toleration in tolerations
            )
        ]
        if missing:
            added = [
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}
                for key in missing
            ]
            spec["tolerations"] = [*tolerations, *added]
