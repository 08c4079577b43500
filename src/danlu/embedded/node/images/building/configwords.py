"""Instructions that change an image's configuration and no file of it."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable

from danlu.embedded.node.images.building.builderrors import wrong_line
from danlu.embedded.node.images.building.instructions import Instruction
from danlu.embedded.node.images.building.stagestate import StageState

PORTS = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?(?:/(tcp|udp|sctp))?")
DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
NANOSECONDS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
HEALTH_FLAGS = {"interval": "Interval", "timeout": "Timeout", "start-period": "StartPeriod",
                "start-interval": "StartInterval"}  # fmt: skip
MOST_PORTS = 65536


def _env(state: StageState, one: Instruction) -> None:
    state.set_env(state.pairs(one.rest, one.line))


def _label(state: StageState, one: Instruction) -> None:
    state.config["Labels"] = dict(state.config.get("Labels") or {}) | state.pairs(one.rest, one.line)


def _user(state: StageState, one: Instruction) -> None:
    state.config["User"] = state.expand(one.rest, one.line)


def _command(state: StageState, one: Instruction) -> list[str]:
    words = one.json_words()
    return [*state.shell, one.rest] if words is None else words


def _cmd(state: StageState, one: Instruction) -> None:
    state.config["Cmd"] = _command(state, one)
    state.has_cmd = True


def _entrypoint(state: StageState, one: Instruction) -> None:
    state.config["Entrypoint"] = _command(state, one)
    if not state.has_cmd:  # the base's was meant for another program
        state.config.pop("Cmd", None)


def _expose(state: StageState, one: Instruction) -> None:
    ports = dict(state.config.get("ExposedPorts") or {})
    for word in state.words(one.rest, one.line):
        found = PORTS.fullmatch(word)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not found or not 0 < first <= last < MOST_PORTS:
            raise wrong_line(one.line, f"{word[:40]} is not a port")
        ports |= {f"{port}/{found[3] or 'tcp'}": {} for port in range(first, last + 1)}
    state.config["ExposedPorts"] = ports


def _volume(state: StageState, one: Instruction) -> None:
    words = one.json_words()
    paths = state.words(one.rest, one.line) if words is None else words
    state.config["Volumes"] = dict(state.config.get("Volumes") or {}) | {path: {} for path in paths}


def _stop_signal(state: StageState, one: Instruction) -> None:
    word = state.expand(one.rest, one.line)
    known = {one.name for one in signal.Signals} | {one.name.removeprefix("SIG") for one in signal.Signals}
    if not word.isdigit() and word not in known and not word.startswith(("SIGRTMIN", "RTMIN", "SIGRTMAX", "RTMAX")):
        raise wrong_line(one.line, f"{word[:40]} is not a signal")
    state.config["StopSignal"] = word


def _shell(state: StageState, one: Instruction) -> None:
    words = one.json_words()
    if not words:
        raise wrong_line(one.line, 'SHELL needs the form ["program", "argument"]')
    state.config["Shell"] = words


def _health_check(state: StageState, one: Instruction) -> None:
    one.only_flags(*HEALTH_FLAGS, "retries")
    word, _, rest = one.rest.partition(" ")
    if word.upper() == "NONE":
        state.config["Healthcheck"] = {"Test": ["NONE"]}
        return
    inner = Instruction(one.line, "CMD", rest.strip())
    if word.upper() != "CMD" or not inner.rest:
        raise wrong_line(one.line, "HEALTHCHECK needs NONE or CMD and a command")
    words = inner.json_words()
    check: dict[str, object] = {"Test": ["CMD-SHELL", inner.rest] if words is None else ["CMD", *words]}
    for flag, name in HEALTH_FLAGS.items():
        if one.flag(flag):
            check[name] = _nanoseconds(one.flag(flag), one.line)
    if one.flag("retries"):
        if not one.flag("retries").isdigit():
            raise wrong_line(one.line, f"--retries={one.flag('retries')[:20]} is not a number")
        check["Retries"] = int(one.flag("retries"))
    state.config["Healthcheck"] = check


def _nanoseconds(text: str, line: int) -> int:
    """As Go reads a duration."""
    if not re.fullmatch(rf"({DURATION.pattern})+", text):
        raise wrong_line(line, f"{text[:40]} is not a duration such as 30s or 1m30s")
    return round(sum(float(number) * NANOSECONDS[unit] for number, unit in DURATION.findall(text)))


def _onbuild(state: StageState, one: Instruction) -> None:
    word = one.rest.split()[0].upper()
    if word in ("FROM", "ONBUILD", "MAINTAINER"):
        raise wrong_line(one.line, f"{word} cannot stand behind ONBUILD")
    state.config["OnBuild"] = [*(state.config.get("OnBuild") or ()), one.rest]


def _maintainer(state: StageState, one: Instruction) -> None:
    state.author = one.rest


WORDS: dict[str, Callable[[StageState, Instruction], None]] = {
    "ENV": _env,
    "LABEL": _label,
    "USER": _user,
    "CMD": _cmd,
    "ENTRYPOINT": _entrypoint,
    "EXPOSE": _expose,
    "VOLUME": _volume,
    "STOPSIGNAL": _stop_signal,
    "SHELL": _shell,
    "HEALTHCHECK": _health_check,
    "ONBUILD": _onbuild,
    "MAINTAINER": _maintainer,
}
