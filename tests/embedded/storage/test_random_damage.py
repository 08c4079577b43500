"""Hundreds of random flips and cuts in the three files of a store: each is healed, accounted for, or refused.

`scripts/torture damage` does the same to whole data directories of a real `danlu up`.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from tests.torture.damages import damage

from danlu.embedded.storage import DataDirectoryError, SqliteJournal, Store
from danlu.embedded.storage.quarantine import HISTORY, LOSS, OBJECT
from danlu.meta.kind import Object

FILES = ("store.db", "store.db-wal", "store.ack")
Truth = dict[str, str]


def thing(name: str, value: str) -> Object:
    return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "data": {"v": value}}


async def make(folder: Path, seed: int) -> tuple[Path, Truth, int]:
    """A store with history, large and small objects, in the state of `kill -9`: partly checkpointed, partly not."""
    chance = random.Random(seed)
    journal = SqliteJournal(folder / "store.db")
    store = Store(journal)
    store.start()
    truth: Truth = {}
    for number in range(250):
        name = f"n{chance.randrange(80)}"
        resource = "secrets" if name.endswith("7") else "things"
        if name in truth and chance.random() < 0.25:
            await store.delete(resource, thing(name, truth.pop(name)))
        else:
            truth[name] = f"{number} " + "x" * int(chance.expovariate(1 / 800))
            await store.put(resource, thing(name, truth[name]))
        if number == 120:
            journal._tidy()
    kept = folder.with_name("kept")
    shutil.copytree(folder, kept)
    revision = store.revision
    await store.close()
    return kept, truth, revision


async def look(folder: Path, truth: Truth, revision: int, done: str) -> str:
    try:
        journal = SqliteJournal(folder / "store.db")
    except DataDirectoryError as error:
        return "refused" if "store.db" in str(error) and "danlu restore" in str(error) else f"{done}: {error}"
    store = Store(journal)
    store.start()
    there = {stored.name: stored.obj["data"]["v"] for resource in store.resources() for stored in store.scan(resource)}
    findings = journal.findings
    wrong = {name for name in {*truth, *there} if truth.get(name) != there.get(name)}
    named = {one.name for one in findings if one.kind == OBJECT} | {
        lost["name"] for one in findings for lost in one.lost
    }
    counted = sum(one.count for one in findings if one.kind == LOSS)
    # A damaged row whose name is damaged, too, is told by its revision.
    unknown = sum(1 for one in findings if one.kind in (OBJECT, HISTORY) and one.name not in truth)
    assert len(wrong - named) <= counted + unknown, f"{done}: silent loss of {wrong - named}; {findings}"
    stored = await store.put("things", thing("afterwards", ""))
    assert stored.revision > revision, f"{done}: a revision was given out again"
    await store.close()
    again = SqliteJournal(folder / "store.db")
    assert again.findings == [], f"{done}: told twice"
    again.close()
    return "told" if findings else "healed"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 2])
async def test_no_damage_to_one_file_is_a_silent_loss(tmp_path: Path, seed: int) -> None:
    (tmp_path / "made").mkdir()
    base, truth, revision = await make(tmp_path / "made", seed)
    chance = random.Random(seed)
    outcomes: Counter[str] = Counter()
    for number in range(100):
        folder = tmp_path / f"try{number}"
        shutil.copytree(base, folder)
        name = chance.choice(FILES)
        done = f"seed {seed}, try {number}, {name}: {damage(folder / name, chance)}"
        outcomes[await look(folder, truth, revision, done)] += 1
        shutil.rmtree(folder)
    assert outcomes["healed"] > 20, outcomes
    assert outcomes["told"] > 5, outcomes
    assert set(outcomes) <= {"healed", "told", "refused"}, outcomes
