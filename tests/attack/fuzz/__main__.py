"""`scripts/fuzz`: attacks a `danlu up` of its own for some minutes. Exit status 1 when something was found."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from tests.attack.fuzz.campaign import Campaign, read, write

FOLDER = Path("fuzz-findings")


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long (default: 5)")
    parser.add_argument(
        "--seed", type=int, default=None, help="the same seed is the same attack (default: by the clock)"
    )
    parser.add_argument("--replay", type=Path, metavar="FILE", help="play what was found once; 1 if it still happens")
    parser.add_argument(
        "--out", type=Path, default=FOLDER, metavar="DIR", help=f"where findings go (default: {FOLDER})"
    )
    parser.add_argument("--mutant", action="append", default=[], help="take a mend out, to see it found (mutants.py)")
    parser.add_argument("--shared", action="store_true", help="attack a `danlu up --shared`")
    arguments = parser.parse_args()
    flags = ("--shared",) if arguments.shared else ()
    if arguments.replay:
        seed, steps = read(arguments.replay)
        finding = Campaign(seed, tuple(arguments.mutant), flags).replay(steps)
        print(f"still there: {finding.signature}: {finding.text}" if finding else "it does not happen any more")
        return 1 if finding else 0
    seed = int(time.time()) if arguments.seed is None else arguments.seed
    print(f"fuzz: seed {seed}, {arguments.minutes:g} minutes", file=sys.stderr, flush=True)
    campaign = Campaign(seed, tuple(arguments.mutant), flags)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C: what was found is written, and nothing runs on
    try:
        campaign.run(arguments.minutes * 60)
    finally:
        for found in campaign.found:
            print(f"{found.signature}\n  {found.finding.text[:500]}\n  {write(found, seed, arguments.out)}")
        statuses = ", ".join(f"{count} × {status or 'none'}" for status, count in sorted(campaign.statuses.items()))
        print(
            f"fuzz: seed {seed}: {campaign.requests} requests in {campaign.episodes} episodes on {campaign.starts} "
            f"servers, {len(campaign.found)} findings ({statuses})"
        )
    return 1 if campaign.found else 0


if __name__ == "__main__":
    sys.exit(main())
