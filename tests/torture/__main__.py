"""`scripts/torture`: hours of what the tests do for a minute.

scripts/torture kill [--kills N | --minutes M] [--seed S]      kill -9 under load
scripts/torture damage [--tries N] [--seed S]                  flipped bits and cuts in every file of the data directory
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.running import Danlu
from tests.torture import damages, kills


def main() -> int:
    command = argparse.ArgumentParser(
        prog="scripts/torture", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    command.add_argument("what", choices=("kill", "damage"))
    command.add_argument("--kills", type=int, help="kill this often, however long it takes")
    command.add_argument("--minutes", type=float, default=10.0)
    command.add_argument("--tries", type=int, default=200, help="damages to try")
    command.add_argument("--seed", type=int, default=int(time.time()), help="of the random choices; printed")
    arguments = command.parse_args()
    say(f"{arguments.what}, seed {arguments.seed}")
    with tempfile.TemporaryDirectory(prefix="danlu-torture-") as folder:
        begun = time.monotonic()
        if arguments.what == "kill":
            _kill(Path(folder), arguments)
        else:
            damages.campaign(Path(folder), arguments.tries, arguments.seed, say)
        say(f"took {time.monotonic() - begun:.0f} s")
    return 0


def _kill(folder: Path, arguments: argparse.Namespace) -> None:
    ends = time.monotonic() + arguments.minutes * 60
    more = (lambda done: done < arguments.kills) if arguments.kills else (lambda _: time.monotonic() < ends)
    danlu = Danlu(folder, "--no-console")
    danlu.up()
    try:
        outcome = kills.torture(danlu, arguments.seed, more, (0.05, 0.8), say)
    finally:
        subprocess.run([sys.executable, "-m", "danlu", "down", "--data-dir", str(danlu.data)], check=False)
    say(
        f"{outcome.kills} kills, {outcome.writes} acknowledged writes, none lost; {outcome.events} events to a watch "
        f"that was cut {outcome.breaks} times, none missed, doubled or out of order"
    )


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
