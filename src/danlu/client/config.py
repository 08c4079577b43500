"""Where the API server is and how to prove who we are: a kubeconfig file, or the files a pod is given.

Order: the path given, $KUBECONFIG (several files are merged, the first to name a thing wins), the pod's service
account, ~/.kube/config.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from danlu.meta import yamlreader

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ClientConfigError(Exception):
    """No usable configuration; the message says which file and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Config:
    server: str  # https://host:port[/prefix]
    namespace: str = "default"
    ca: bytes = b""  # PEM; empty: the system's own
    client_certificate: bytes = b""  # PEM
    client_key: bytes = b""  # PEM
    token: str = ""
    token_file: str = ""  # read again for each connection's life: the kubelet renews it
    username: str = ""
    password: str = ""
    insecure: bool = False
    tls_server_name: str = ""


def load(path: str | Path | None = None, context: str = "", environ: Mapping[str, str] = os.environ) -> Config:
    if path is None and not environ.get("KUBECONFIG") and environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(environ)
    if path is not None:
        paths = [Path(path)]
    elif environ.get("KUBECONFIG"):
        paths = [Path(part) for part in environ["KUBECONFIG"].split(os.pathsep) if part]
    else:
        paths = [Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"]
    return from_kubeconfig(paths, context)


def in_cluster(environ: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT) -> Config:
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (folder / "token").exists():
        raise ClientConfigError("not in a pod: KUBERNETES_SERVICE_HOST or the service account's token is missing")
    namespace = folder / "namespace"
    return Config(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        ca=(folder / "ca.crt").read_bytes() if (folder / "ca.crt").exists() else b"",
        token_file=str(folder / "token"),
    )


def from_kubeconfig(paths: list[Path], context: str = "") -> Config:
    merged = _merge(paths)
    wanted = context or merged["current-context"]
    if not wanted:
        raise ClientConfigError(
            f"{_shown(paths)} names no current-context: choose one with `kubectl config use-context`"
        )
    chosen = _named(merged, "contexts", "context", wanted, paths)
    cluster = _named(merged, "clusters", "cluster", chosen.get("cluster", ""), paths)
    user = _named(merged, "users", "user", chosen["user"], paths) if chosen.get("user") else {}
    if not cluster.get("server"):
        raise ClientConfigError(f"{_shown(paths)}: cluster {chosen.get('cluster')!r} has no server")
    return Config(
        server=cluster["server"].rstrip("/"),
        namespace=chosen.get("namespace") or "default",
        ca=_data(cluster, "certificate-authority"),
        client_certificate=_data(user, "client-certificate"),
        client_key=_data(user, "client-key"),
        token=user.get("token") or "",
        token_file=_beside(user, user["tokenFile"]) if user.get("tokenFile") else "",
        username=user.get("username") or "",
        password=user.get("password") or "",
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        tls_server_name=cluster.get("tls-server-name") or "",
    )


def _merge(paths: list[Path]) -> dict[str, Any]:
    merged: dict[str, Any] = {"clusters": {}, "contexts": {}, "users": {}, "current-context": ""}
    found = False
    for path in paths:
        if not path.exists():
            continue
        found = True
        try:
            content = yamlreader.load(path.read_bytes())[0] or {}
        except (OSError, yamlreader.YamlError) as error:
            raise ClientConfigError(f"{path} cannot be read: {error}") from None
        if not isinstance(content, dict):
            raise ClientConfigError(f"{path} is not a kubeconfig")
        merged["current-context"] = merged["current-context"] or content.get("current-context") or ""
        for section in ("clusters", "contexts", "users"):
            for entry in content.get(section) or ():
                merged[section].setdefault(entry["name"], {**entry, "folder": str(path.parent)})
    if not found:
        raise ClientConfigError(f"no kubeconfig at {_shown(paths)}")
    return merged


def _named(merged: dict[str, Any], section: str, key: str, name: str, paths: list[Path]) -> dict[str, Any]:
    entry = merged[section].get(name)
    if entry is None:
        raise ClientConfigError(f"{_shown(paths)} has no {key} {name!r}")
    return {**(entry.get(key) or {}), "folder": entry["folder"]}


def _data(entry: dict[str, Any], field: str) -> bytes:
    if entry.get(f"{field}-data"):
        return base64.b64decode(entry[f"{field}-data"])
    if entry.get(field):
        try:
            return Path(_beside(entry, entry[field])).read_bytes()
        except OSError as error:
            raise ClientConfigError(f"{field}: {error}") from None
    return b""


def _beside(entry: dict[str, Any], path: str) -> str:
    """Relative paths in a kubeconfig are relative to it."""
    return str(Path(entry.get("folder", ".")) / path)


def _shown(paths: list[Path]) -> str:
    return os.pathsep.join(map(str, paths))
