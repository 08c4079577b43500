"""Is the log what was acknowledged? Rows in, verdict out; nothing is read or written here.

The newest ledger that can be trusted (of the newest row, or of `store.ack`) says how many rows there have to be and
what their checksums add up to. A row that is damaged, missing or too many shows in that; a missing end shows because
`store.ack` knows of a later revision.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from danlu.embedded.storage.acknowledged import Written
from danlu.embedded.storage.records import Key, Ledger, Row, examine, mended


@dataclass(slots=True)
class Damaged:
    row: Row
    reason: str
    key_holds: bool
    current: bool = True  # False: a newer version of the object holds, so only history is hurt
    previous: Row | None = None


@dataclass(slots=True)
class IntegrityVerdict:
    rows: list[Row]  # those that hold, in the order of their revisions
    checks: dict[int, int]  # revision -> checksum, of the rows that hold
    ledger: Ledger  # the newest one that can be trusted
    damaged: list[Damaged] = field(default_factory=list)
    remade: list[Row] = field(default_factory=list)  # their keys were damaged, and known from their objects
    missing: int = 0  # rows that the ledger counts and nobody finds; negative: more than there should be
    lost: list[Written] = field(default_factory=list)  # acknowledged writes that are not there, as far as known
    tail: tuple[int, int] | None = None  # acknowledged revisions beyond the end of the log: first, last
    forgotten_unknown: bool = False

    @property
    def whole(self) -> bool:
        return not (self.damaged or self.remade or self.missing or self.lost or self.tail or self.forgotten_unknown)


def inspect(rows: Iterable[Row], acknowledged: Ledger | None, recent: Sequence[Written] = ()) -> IntegrityVerdict:
    """`recent`: keys of the last acknowledged writes, for telling a loss by name."""
    verdict = IntegrityVerdict([], {}, Ledger())
    own: Ledger | None = None
    broken: list[Row] = []
    checks = 0
    count = 0
    for row in rows:
        seen = examine(row)
        count += 1
        if seen.holds:
            verdict.rows.append(row)
            verdict.checks[row.revision] = seen.check
            checks += seen.check
        else:
            broken.append(row)
            checks += seen.check
        if seen.ledger is not None and seen.key_holds and (own is None or seen.ledger.revision > own.revision):
            own = seen.ledger
    _judge_broken(verdict, broken)
    present = set(verdict.checks) | {one.row.revision for one in verdict.damaged}
    last = max([*verdict.checks, acknowledged.revision if acknowledged else 0], default=0)
    newest_revision = max((one for one in present if one <= last), default=0)  # beyond: a damaged number
    own_is_newest = own is not None and own.revision == newest_revision
    if acknowledged is not None and (own is None or acknowledged.revision >= own.revision):
        ledger = acknowledged
    else:
        ledger = own or Ledger()
        verdict.forgotten_unknown = not own_is_newest and count > 0
    verdict.ledger = ledger
    verdict.missing = ledger.rows - count
    if ledger.revision > newest_revision:
        verdict.tail = (newest_revision + 1, ledger.revision)
        verdict.lost = [one for one in recent if one.revision not in present and one.revision > newest_revision]
        # Its count is of a later state; what was pruned since is still here.
        verdict.missing = len(verdict.lost)
    elif not verdict.missing and checks & (1 << 64) - 1 != ledger.total and not broken:
        verdict.missing = 1  # one row in the place of another
    if verdict.missing > 0 and not verdict.tail:
        verdict.lost = [
            one for one in recent if one.revision not in present and ledger.forgotten < one.revision <= ledger.revision
        ]
    return verdict


def _judge_broken(verdict: IntegrityVerdict, broken: list[Row]) -> None:
    newest: dict[Key, Row] = {}
    for row in verdict.rows:
        newest[row.key] = row
    resources = list(dict.fromkeys(row.resource for row in verdict.rows))
    for row in broken:
        seen = examine(row)
        if seen.object_holds and not seen.key_holds:
            remade = mended(row, resources)
            if remade is not None and remade.revision not in verdict.checks:
                verdict.remade.append(remade)
                continue
        reason = _reason(seen.key_holds, seen.object_holds, seen.ledger is not None)
        found = Damaged(row, reason, seen.key_holds)
        same = newest.get(row.key) if seen.key_holds else None
        if same is not None:
            found.current = same.revision < row.revision
            found.previous = same if found.current else None
        verdict.damaged.append(found)
    for row in verdict.remade:
        verdict.checks[row.revision] = examine(row).check
        verdict.rows.append(row)
    if verdict.remade:
        verdict.rows.sort(key=lambda row: row.revision)


def _reason(key_holds: bool, object_holds: bool, seal_holds: bool) -> str:
    if not key_holds and not object_holds:
        return "its checksums are unreadable or fit neither its name nor its content"
    if not key_holds:
        return "its checksum does not fit its name"
    return "its checksum does not fit its content"
