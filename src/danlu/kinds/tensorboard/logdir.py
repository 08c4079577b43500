"""Where a TensorBoard's logs lie, from either spelling."""

from __future__ import annotations

from dataclasses import dataclass, field

from danlu.meta.kind import Object

PREFIX = "t9k://"
MOUNT = "/logs"


@dataclass(slots=True)
class Logs:
    claims: list[tuple[str, str]] = field(default_factory=list)  # (claim, folder in it)
    unsupported: list[str] = field(default_factory=list)  # in the user's words


def of(spec: Object) -> Logs:
    found = Logs()
    for fileset in spec.get("trainingLogFilesets") or ():
        _fileset(fileset, found)
    directory = spec.get("logDir") or {}
    for entry in directory.get("pvc") or ():
        for folder in entry.get("subPath") or [""]:
            found.claims.append((entry["name"], folder.strip("/")))
    found.unsupported += [f"logDir.s3 {uri}" for uri in (directory.get("s3") or {}).get("uri") or ()]
    found.unsupported += [f"logDir.http {url}" for url in (directory.get("http") or {}).get("url") or ()]
    found.claims = [*dict.fromkeys(found.claims)]
    return found


def _fileset(fileset: str, found: Logs) -> None:
    kind, _, rest = fileset.removeprefix(PREFIX).partition("/")
    if kind != "pvc":
        found.unsupported.append(fileset)
        return
    claim, _, folder = rest.partition("/")
    found.claims.append((claim, folder.strip("/")))


def arguments(logs: Logs) -> list[str]:
    """One folder as --logdir; several as named runs, so that their curves are told apart."""
    folders = [f"{MOUNT}/{claim}/{folder}".rstrip("/") for claim, folder in logs.claims]
    if len(folders) == 1:
        return [f"--logdir={folders[0]}"]
    named = [f"{claim}/{folder}".strip("/").replace(":", "_").replace(",", "_") for claim, folder in logs.claims]
    return ["--logdir_spec=" + ",".join(f"{name}:{folder}" for name, folder in zip(named, folders, strict=True))]
