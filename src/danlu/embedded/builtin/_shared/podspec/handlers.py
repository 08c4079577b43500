"""Probes and lifecycle hooks: exactly one way to ask, within sensible numbers."""

from __future__ import annotations

from typing import Any

from danlu.meta import names
from danlu.meta.fields import NOT_NEGATIVE, FieldError, forbidden, invalid, not_supported, required
from danlu.meta.kind import Object

_KINDS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def port_errors(port: Any, path: str) -> list[FieldError]:
    """A port by number or by the name a container gives it."""
    if isinstance(port, str):
        return [invalid(path, port, text) for text in names.port_name(port)]
    return [invalid(path, port or 0, text) for text in names.port_number(port or 0)]


def probe_errors(probe: Object, kind: str, path: str) -> list[FieldError]:
    """`kind` is livenessProbe, readinessProbe or startupProbe."""
    errors = _handler_errors(probe, None, path)
    errors += [invalid(f"{path}.{name}", probe[name], NOT_NEGATIVE) for name in _COUNTS if (probe.get(name) or 0) < 0]
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        errors.append(invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0"))
    if kind == "readinessProbe":
        if grace is not None:
            text = "must not be set for readinessProbes"
            errors.append(invalid(f"{path}.terminationGracePeriodSeconds", grace, text))
    elif probe.get("successThreshold") != 1:
        errors.append(invalid(f"{path}.successThreshold", probe.get("successThreshold"), "must be 1"))
    return errors


def lifecycle_errors(lifecycle: Object, grace: int | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in ("postStart", "preStop"):
        if lifecycle.get(name) is not None:
            errors += _handler_errors(lifecycle[name], grace, f"{path}.{name}")
    return errors


def _handler_errors(handler: Object, grace: int | None, path: str) -> list[FieldError]:
    given = [kind for kind in _KINDS if handler.get(kind) is not None]
    if not given:
        return [required(path, "must specify a handler type")]
    first, where = given[0], f"{path}.{given[0]}"
    action = handler[first]
    errors: list[FieldError] = []
    if first == "exec":
        if not action.get("command"):
            errors.append(required(f"{where}.command"))
    elif first == "httpGet":
        errors += _http_errors(action, where)
    elif first in ("tcpSocket", "grpc"):
        errors += port_errors(action.get("port"), f"{where}.port")
    elif grace is not None and not 0 <= (action.get("seconds") or 0) <= grace:
        text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        errors.append(invalid(where, action.get("seconds"), text))
    return errors + [forbidden(f"{path}.{kind}", "may not specify more than 1 handler type") for kind in given[1:]]


def _http_errors(get: Object, path: str) -> list[FieldError]:
    errors = [] if get.get("path") else [required(f"{path}.path")]
    errors += port_errors(get.get("port"), f"{path}.port")
    if get.get("scheme") not in ("HTTP", "HTTPS"):
        errors.append(not_supported(f"{path}.scheme", get.get("scheme") or "", ("HTTP", "HTTPS")))
    for header in get.get("httpHeaders") or ():
        name = header.get("name") or ""
        errors += [invalid(f"{path}.httpHeaders", name, text) for text in names.http_header_name(name)]
    return errors
