"""What the system tells of processes: exit codes, start times, trees, memory. Empty answers where there is no /proc."""

from __future__ import annotations

import os
import signal


def exit_code(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def start_time(pid: int) -> int:
    """When the process started, in clock ticks: with the pid it names one process for good. 0 when it is not alive."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return 0 if fields[0] in b"ZX" else int(fields[19])
    except (OSError, IndexError, ValueError):
        return 0


IGNORED_BY_DEFAULT = frozenset((signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH))


def is_deaf(pid: int, number: int) -> bool:
    """Whether a signal that ends others does nothing to this process, and not because its program says so: it is number
    1 of its namespace, has no handler for it, and neither ignores it nor waits for it. False when that is not known."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            told = dict(line.split(b":", 1) for line in file)
        heeded = [int(told[name], 16) for name in (b"SigCgt", b"SigIgn", b"SigBlk")]
        is_first = int(told[b"NSpid"].split()[-1]) == 1
    except (OSError, KeyError, ValueError):
        return False
    return is_first and number not in IGNORED_BY_DEFAULT and not any(mask >> (number - 1) & 1 for mask in heeded)


def boot_id() -> str:
    """Start times begin anew with each boot: only together with this they name a process."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        try:
            threads = os.listdir(f"/proc/{parent}/task")
        except OSError:
            continue
        for thread in threads:
            try:
                with open(f"/proc/{parent}/task/{thread}/children", "rb") as file:
                    children = [int(word) for word in file.read().split()]
            except OSError:
                continue
            found += children
            waiting += children
    return found


def process_of(thread: int) -> int:
    try:
        with open(f"/proc/{thread}/status", "rb") as file:
            return next((int(line.split()[1]) for line in file if line.startswith(b"Tgid:")), 0)
    except OSError:
        return 0


def parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return ""


def holder(ancestors: list[int], inode: int) -> tuple[int, int] | None:
    """(pid, descriptor) of a process below one of `ancestors` that has the socket with this inode open."""
    for ancestor in ancestors:
        for pid in descendants(ancestor):
            fd = _socket_fd(pid, inode)
            if fd >= 0:
                return pid, fd
    return None


def any_holder(inode: int) -> int:
    """A process of the machine that has this socket open; 0 when none is found, or none that we may look into."""
    pids = (int(entry) for entry in os.listdir("/proc") if entry.isdigit())
    return next((pid for pid in pids if inode and _socket_fd(pid, inode) >= 0), 0)


def _socket_fd(pid: int, inode: int) -> int:
    folder, wanted = f"/proc/{pid}/fd", f"socket:[{inode}]"
    try:
        for fd in os.listdir(folder):
            try:
                if os.readlink(f"{folder}/{fd}") == wanted:
                    return int(fd)
            except FileNotFoundError:
                continue  # closed meanwhile
    except OSError:
        pass  # gone, or not ours to look into
    return -1


def cpu_seconds(pid: int, *, own: bool = True) -> float:
    """Processor time of the process (unless not `own`) and of those of its children that ended and were waited for."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        ticks = sum(map(int, fields[11:15] if own else fields[13:15]))
    except (OSError, ValueError):
        return 0.0
    return ticks / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def proportional(pid: int) -> int:
    """Resident bytes, shared pages divided among those who share them."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resident(pid)
