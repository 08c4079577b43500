"""Flipped bits and cuts in every file of the data directory: each is harmless, or found and told; nothing else.

A data directory is made by a real `danlu up` and left by `kill -9`. Each try copies it, damages one file, starts, and
compares with what was acknowledged: every object that is missing or different must be accounted for.
"""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from danlu.embedded.storage import Finding, Quarantine
from danlu.embedded.storage.quarantine import LOSS, OBJECT
from tests.running import Api, Danlu
from tests.torture.kills import kill

PATHS = {
    "configmaps": "/api/v1/namespaces/default/configmaps",
    "secrets": "/api/v1/namespaces/default/secrets",
}
USERS_OWN = ("volumes/", "images/")  # what users put there is theirs: it has no checksums of ours
STORE = ("store.db", "store.db-wal", "store.ack")  # chosen more often than each of the many small files
HARMLESS, TOLD, REFUSED = "harmless", "found and told", "refused, naming the file"


@dataclass(slots=True)
class Base:
    """A data directory after `kill -9`, and what was acknowledged before."""

    data: Path
    objects: dict[tuple[str, str], Any] = field(default_factory=dict)
    revision: int = 0


def prepare(folder: Path) -> Base:
    danlu = Danlu(folder)
    danlu.up()
    base = Base(folder / "base")
    api = Api(danlu.kubeconfig)
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox", "command": ["true"]}]}
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod}
    ))  # fmt: skip
    danlu.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/p", "--timeout=50s")
    danlu.kubectl("create", "token", "default")  # so that there is a key to sign them with
    for number in range(150):
        # Some grow beyond a page; some are changed and deleted, so that there is history.
        _write(api, base, "POST", "configmaps", f"c{number}", {"said": f"{number} " + "x" * (number * number)})
        if number % 5 == 0:
            _write(api, base, "POST", "secrets", f"s{number}", {"said": "aGlkZGVu"})
        if number % 3 == 0:
            _write(api, base, "PUT", "configmaps", f"c{number // 2}", {"said": f"changed {number}"})
        if number % 7 == 0:
            status, _ = api.request("DELETE", f"{PATHS['configmaps']}/c{number // 3}")
            if status == 200:
                base.objects.pop(("configmaps", f"c{number // 3}"), None)
    kill(danlu)
    shutil.copytree(danlu.data, base.data, symlinks=True)
    danlu.command("down")
    return base


def _write(api: Api, base: Base, method: str, resource: str, name: str, data: dict[str, str]) -> None:
    path = PATHS[resource] + (f"/{name}" if method == "PUT" else "")
    status, answer = api.request(method, path, {"metadata": {"name": name}, "data": data})
    if status in (200, 201):
        base.objects[resource, name] = data
        base.revision = int(answer["metadata"]["resourceVersion"])


def damage(path: Path, chance: random.Random) -> str:
    data = bytearray(path.read_bytes())
    how = chance.choice(("flip", "flip", "flip", "cut", "blank", "empty"))
    at = chance.randrange(len(data)) if data else 0
    if how == "empty" or not data:
        data.clear()
        said = "emptied"
    elif how == "cut":
        said = f"cut at {at} of {len(data)}"
        del data[at:]
    elif how == "blank":
        start = at // 512 * 512
        data[start : start + 512] = bytes(len(data[start : start + 512]))
        said = f"a sector of zeros at {start} of {len(data)}"
    else:
        bit = chance.randrange(8)
        data[at] ^= 1 << bit
        said = f"bit {bit} of byte {at} of {len(data)} flipped"
    path.write_bytes(data)
    return said


def targets(data: Path) -> list[str]:
    found = sorted(str(path.relative_to(data)) for path in data.rglob("*") if path.is_file() and not path.is_symlink())
    return [name for name in found if not name.startswith(USERS_OWN)]


def attempt(base: Base, folder: Path, name: str, chance: random.Random) -> tuple[str, str]:
    """(what became of it, what was done). Raises AssertionError for a silent loss."""
    danlu = Danlu(folder)
    shutil.copytree(base.data, danlu.data, symlinks=True)
    done = f"{name}: {damage(danlu.data / name, chance)}"
    started = danlu.command("up", "--detach", "--port", "0", check=False)
    if started.returncode != 0:
        said = started.stderr.strip()
        log = (danlu.data / "danlu.log").read_text(errors="replace")[-3000:]
        assert "it did not start" not in said, f"{done}: no clear refusal: {said}\n{log}"
        assert str(danlu.data) in said, f"{done}: the refusal names no file: {said}"
        assert danlu.command("status", check=False).returncode == 3, f"{done}: refused, and runs"
        return REFUSED, f"{done}: {said}"
    try:
        return _compare(base, danlu, done), done
    finally:
        danlu.command("down")


def _compare(base: Base, danlu: Danlu, done: str) -> str:
    api = Api(danlu.kubeconfig)
    there: dict[tuple[str, str], Any] = {}
    for resource, path in PATHS.items():
        status, listed = api.request("GET", path)
        assert status == 200, f"{done}: {status} {listed}"
        there |= {(resource, item["metadata"]["name"]): item.get("data") for item in listed["items"]}
    status, answer = api.request("POST", PATHS["configmaps"], {"metadata": {"name": "afterwards"}})
    assert status == 201, f"{done}: {status} {answer}"
    assert int(answer["metadata"]["resourceVersion"]) > base.revision, f"{done}: a revision was given out again"
    wrong = [key for key, data in base.objects.items() if there.get(key) != data]
    back = [key for key in there if key not in base.objects and key[1] != "kube-root-ca.crt"]
    findings = Quarantine(danlu.data / "quarantine").findings()
    if wrong or back:
        _account(findings, wrong, back, done)
    said = danlu.command("status").stdout
    assert not findings or "damage" in said, f"{done}: found and not told: {findings}"
    return TOLD if findings else HARMLESS


def _account(findings: list[Finding], wrong: list[tuple[str, str]], back: list[tuple[str, str]], done: str) -> None:
    named = {(one.resource, one.name) for one in findings if one.kind == OBJECT}
    named |= {(write["resource"], write["name"]) for one in findings for write in one.lost}
    unnamed = [key for key in (*wrong, *back) if key not in named]
    lost = sum(one.count for one in findings if one.kind == LOSS)
    unknown = sum(1 for one in findings if one.kind == OBJECT and (one.resource, one.name) not in wrong)
    assert len(unnamed) <= lost + unknown, f"{done}: SILENT LOSS of {unnamed}; findings: {findings}"


def campaign(folder: Path, tries: int, seed: int, say: Callable[[str], None]) -> Counter[str]:
    chance = random.Random(seed)
    base = prepare(folder / "made")
    names = targets(base.data)
    say(f"{len(base.objects)} objects up to revision {base.revision}; {len(names)} files: {', '.join(names)}")
    outcomes: Counter[str] = Counter()
    for number in range(tries):
        # Every file comes up; the store, where the objects are, every other time.
        name = chance.choice(STORE) if number % 2 else names[number // 2 % len(names)]
        place = folder / f"try{number}"
        outcome, done = attempt(base, place, name, chance)
        outcomes[outcome] += 1
        say(f"{number + 1}/{tries} {outcome}: {done}")
        shutil.rmtree(place)
    say(f"{tries} damages: " + ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
    say("none was a silent loss")
    return outcomes
