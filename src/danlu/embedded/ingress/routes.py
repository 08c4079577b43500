"""Which service answers for a host and a path, by the rules of all Ingresses together.

The most particular host decides: its own name, then a wildcard for its first label, then rules for any host. Of its
paths the longest wins, and an exact one before a prefix. Where two Ingresses say the same, the older one has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from danlu.meta import objects
from danlu.meta.kind import Object

ANY = ""


@dataclass(frozen=True, slots=True)
class RouteBackend:
    namespace: str
    service: str
    port: int | str  # a name stands for what the service says


@dataclass(frozen=True, slots=True)
class Path:
    text: str
    exact: bool
    backend: RouteBackend | None  # None: of a sort that is not served

    def matches(self, path: str) -> bool:
        if self.exact:
            return path == self.text
        prefix = self.text.rstrip("/")
        return path == prefix or path.startswith(f"{prefix}/")


@dataclass(frozen=True, slots=True)
class Routes:
    hosts: dict[str, list[Path]] = field(default_factory=dict)
    default: RouteBackend | None = None
    secrets: dict[str, tuple[str, str]] = field(default_factory=dict)  # host -> namespace and name of its TLS secret

    def find(self, host: str, path: str) -> RouteBackend | None:
        for name in candidates(host):
            if name in self.hosts:
                found = next((one for one in self.hosts[name] if one.matches(path)), None)
                return self.default if found is None else found.backend
        return self.default

    def secret(self, host: str) -> tuple[str, str] | None:
        return next((self.secrets[name] for name in candidates(host) if name in self.secrets), None)


def candidates(host: str) -> list[str]:
    """From the most to the least particular."""
    _, dot, rest = host.partition(".")
    return [host, f"*.{rest}", ANY] if dot else [host, ANY]


def routes(ingresses: Iterable[Object]) -> Routes:
    made = Routes()
    default: RouteBackend | None = None
    for ingress in sorted(ingresses, key=_age):
        namespace, spec = objects.namespace(ingress), ingress.get("spec") or {}
        if default is None:
            default = _backend(namespace, spec.get("defaultBackend") or {})
        for rule in spec.get("rules") or ():
            paths = made.hosts.setdefault(rule.get("host") or ANY, [])
            for one in (rule.get("http") or {}).get("paths") or ():
                exact = one["pathType"] == "Exact"
                paths.append(Path(one.get("path") or "/", exact, _backend(namespace, one["backend"])))
        for tls in spec.get("tls") or ():
            for host in tls.get("hosts") or (ANY,):
                if tls.get("secretName"):
                    made.secrets.setdefault(host, (namespace, tls["secretName"]))
    for paths in made.hosts.values():
        paths.sort(key=lambda one: (-len(one.text.rstrip("/")), not one.exact))  # the older of equal ones stays first
    return Routes(made.hosts, default, made.secrets)


def _age(ingress: Object) -> tuple[str, str, str]:
    created = objects.get(ingress, "metadata.creationTimestamp", "")
    return created, objects.namespace(ingress), objects.name(ingress)


def _backend(namespace: str, backend: Object) -> RouteBackend | None:
    service = backend.get("service")
    if service is None:
        return None
    port = service.get("port") or {}
    return RouteBackend(namespace, service["name"], port.get("name") or port.get("number") or 0)
