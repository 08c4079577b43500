"""The watchdog's eyes: a small process that sees whether the event loop of the other turns, and what it is at.

Started as a file in a bare interpreter, so it knows the standard library only. It ends when its standard input does:
with the process that it watches, however that ends.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import select
import signal
import struct
import sys
import time

# The page: how often the loop has turned; whether somebody was told that it does not; what it is at.
PAGE = 4096
BEATS, TOLD, LENGTH, ENTRY = struct.Struct("<Q"), 8, 10, 12
STACK = signal.SIGUSR1  # whereupon faulthandler writes where the loop's thread is

Entry = dict[str, str]


class Watcher:
    def __init__(self, page: mmap.mmap, set_aside: str, tick_s: float, most_ticks: int) -> None:
        """`set_aside`: the file that the next start reads; "": there is none."""
        self._page = page
        self._set_aside = set_aside
        self._tick_s = tick_s
        self._most_ticks = most_ticks
        self._watched = os.getppid()
        self._seen, self._silent = -1, 0

    def run(self) -> None:
        while not select.select([0], [], [], self._tick_s)[0]:
            (beats,) = BEATS.unpack_from(self._page, 0)
            if beats != self._seen:
                if self._silent >= self._most_ticks:
                    _log("WARNING", f"the event loop turns again, after {self._silent * self._tick_s:.0f} s")
                self._seen, self._silent = beats, 0
            elif not self._is_stopped():
                self._silent += 1
                if self._silent == self._most_ticks:
                    self._tell()

    def _is_stopped(self) -> bool:
        """By a signal, or a debugger: then nothing is wrong with what it is at."""
        try:
            with open(f"/proc/{self._watched}/stat", "rb") as file:
                return file.read().rpartition(b") ")[2][:1] in b"Tt"
        except OSError:
            return False

    def _tell(self) -> None:
        blocked = f"the event loop has been blocked for {self._most_ticks * self._tick_s:.0f} s"
        entry = self._at_work()
        if entry is None:
            _log("ERROR", f"{blocked}; it is here:")
        else:
            name = "/".join(filter(None, (entry["namespace"], entry["name"])))
            what = f"{blocked} by the {entry['controller']} controller, at {name}"
            then = "should this process be killed, the next one leaves that object alone until it is changed or deleted"
            _log("ERROR", f"{what}; {then}. It is here:")
            self._page[TOLD] = 1
            self._put_aside(entry)
        if os.getppid() == self._watched:
            os.kill(self._watched, STACK)

    def _at_work(self) -> Entry | None:
        (length,) = struct.unpack_from("<H", self._page, LENGTH)
        entry: Entry | None = json.loads(self._page[ENTRY : ENTRY + length]) if length else None
        return entry

    def _put_aside(self, entry: Entry) -> None:
        """As `DataDirectory.write_set_aside` does, which cannot now. The process writes it anew when it comes back."""
        if not self._set_aside:
            return
        entry["since"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        known: list[Entry] = []
        with contextlib.suppress(OSError, ValueError), open(self._set_aside, encoding="utf-8") as file:
            known = json.load(file)
        same = ("controller", "namespace", "name")
        kept = [one for one in known if any(one.get(part) != entry[part] for part in same)]
        partial = f"{self._set_aside}.{os.getpid()}.new"
        try:
            with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                json.dump([*kept, entry], file, indent=2)
            os.replace(partial, self._set_aside)
        except OSError as error:
            _log("WARNING", f"{self._set_aside} could not be written: {error.strerror}")


def _log(level: str, text: str) -> None:
    """As the log of the process that is watched, whose standard error this has."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
    line = f"{stamp},{int(now * 1000) % 1000:03} {level} danlu.runtime.watchdog: {text}\n"
    with contextlib.suppress(OSError):
        os.write(2, line.encode())


def main(descriptor: str, set_aside: str, tick_s: str, most_ticks: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, STACK):
        signal.signal(number, signal.SIG_IGN)  # they are meant for the process that is watched
    page = mmap.mmap(int(descriptor), PAGE)
    Watcher(page, set_aside, float(tick_s), int(most_ticks)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
