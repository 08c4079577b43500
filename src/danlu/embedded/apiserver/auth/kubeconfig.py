"""The kubeconfig that `danlu up` hands out, and its merging into the user's own file.

The user's file is theirs: all entries and keys we do not own stay, the file is replaced in one step and keeps its
mode, and a file that cannot be understood is left alone.
"""

from __future__ import annotations

import base64
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from danlu.embedded.apiserver.auth.certificateauthority import KeyPair, write_private

NAME = "danlu"
_PLAIN = re.compile(r"[A-Za-z][\w+/=.-]*(:[\w+/=.-]+)*")  # text that needs no quotes in YAML


class KubeconfigError(Exception):
    """The user's kubeconfig cannot be read as one; nothing was changed."""


def admin_config(server: str, authority_pem: str, client: KeyPair, name: str = NAME) -> dict[str, Any]:
    """A kubeconfig with one cluster, one user and one context, all of them called `name`."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "certificate-authority-data": _base64(authority_pem.encode()),
                    "server": server,
                },
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
        "preferences": {},
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate-data": _base64(client.certificate.read_bytes()),
                    "client-key-data": _base64(client.key.read_bytes()),
                },
            }
        ],
    }


def write(path: Path, config: dict[str, Any]) -> None:
    """Ours to write; runs at every start, so it does without a YAML library and touches nothing that is right."""
    data = ("\n".join(_lines(config)) + "\n").encode()
    try:
        unchanged = path.read_bytes() == data
    except OSError:
        unchanged = False
    if not unchanged:
        write_private(path, data)


def merge(path: Path, config: dict[str, Any], *, use: bool = True) -> None:
    """Put `config`'s entries into the file at `path`; `use` also makes its context the current one."""
    target = Path(os.path.realpath(path))  # a symlink stays a symlink
    try:
        text = target.read_text()
        mode = stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        text, mode = "", 0o600
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise KubeconfigError(f"{path} cannot be read: {why}") from error
    merged = merged_config(_load(path, text), config, path)
    if use or not merged.get("current-context"):
        merged["current-context"] = config["current-context"]
    write_private(target, _dump(merged).encode(), mode)


def merged_config(existing: dict[str, Any], config: dict[str, Any], path: Path) -> dict[str, Any]:
    merged = {"apiVersion": "v1", "kind": "Config", **existing}
    for section in ("clusters", "contexts", "users"):
        entries = merged.get(section) or []
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise KubeconfigError(f"{path}: {section} is not a list of named entries; left as it is")
        ours = {entry["name"]: entry for entry in config[section]}
        kept = [_updated(entry, ours.pop(entry.get("name"), None)) for entry in entries]
        merged[section] = [*kept, *ours.values()]
    return merged


def _updated(entry: dict[str, Any], ours: dict[str, Any] | None) -> dict[str, Any]:
    """A context of ours that the user gave a namespace keeps it; credentials and addresses are replaced whole."""
    if ours is None:
        return entry
    if "context" in ours and isinstance(entry.get("context"), dict):
        return {**entry, "context": {**entry["context"], **ours["context"]}}
    return {**entry, **ours}


def _lines(value: dict[str, Any], indent: str = "") -> Iterator[str]:
    for key, item in value.items():
        if isinstance(item, dict):
            yield f"{indent}{key}:" if item else f"{indent}{key}: {{}}"
            yield from _lines(item, indent + "  ")
        elif isinstance(item, list):
            yield f"{indent}{key}:"
            for entry in item:
                first, *rest = _lines(entry, indent + "  ")
                yield f"{indent}- {first.strip()}"
                yield from rest
        else:
            yield f"{indent}{key}: {item if _PLAIN.fullmatch(item) else json.dumps(item)}"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _load(path: Path, text: str) -> dict[str, Any]:
    from danlu.meta import yamlreader

    try:
        found = yamlreader.load(text)[0]
    except yamlreader.YamlError as error:
        raise KubeconfigError(f"{path} is not valid YAML ({error}); left as it is") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise KubeconfigError(f"{path} is not a kubeconfig; left as it is")
    return found


def _dump(config: dict[str, Any]) -> str:
    import yaml

    return yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=1 << 20)
