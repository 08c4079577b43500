"""Documents against the code and against each other: commands exist, links lead somewhere, languages keep step.

A block that begins with ```sh run is executed; ```text expect after it holds lines that its output must have (… stands
for anything).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.house.tree import LANGUAGES, ROOT, blocks, prose, text_of, tracked
from tests.running import Danlu

from danlu.cli.command import Command, load
from danlu.cli.commands import COMMANDS, Entry

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^(#+) ", re.M)
COMMAND = re.compile(r"(?:^|[`\s(])(?:\.venv/bin/)?danlu ((?:[a-z]+)(?:[^`\n#&|;)]*))")
VARIABLE = re.compile(r"\bDANLU_[A-Z][A-Z_]*[A-Z]\b")
RUN_AS_WRITTEN = ("tutorials/first-job.md", "how-to/everyday-commands.md")


def _documents() -> list[Path]:
    return list(tracked(".md"))


def _pairs() -> list[tuple[Path, Path]]:
    """(English, Chinese) of every document that has to be in both languages."""
    found = [(Path("README.md"), Path("README.zh.md"))]
    for path in tracked("README.zh.md"):
        if path.parts[0] == "examples":
            found.append((path.with_name("README.md"), path))
    names = {
        path.relative_to(f"docs/{code}")
        for code in LANGUAGES
        for path in tracked(".md")
        if path.parts[:2] == ("docs", code)
    }
    return found + [(Path("docs/en") / name, Path("docs/zh") / name) for name in sorted(names)]


@pytest.mark.parametrize("pair", _pairs(), ids=lambda pair: str(pair[0]))
def test_languages_keep_step(pair: tuple[Path, Path]) -> None:
    english, chinese = pair
    for path in pair:
        assert (ROOT / path).exists(), f"{path} is missing: documents come in both languages"
    shapes = [[len(marks) for marks in HEADING.findall(prose(text_of(path)))] for path in pair]
    assert shapes[0] == shapes[1], f"{english} and {chinese} have different headings"
    counts = [[(language, rest) for language, rest, _ in blocks(text_of(path))] for path in pair]
    assert counts[0] == counts[1], f"{english} and {chinese} have different blocks"
    runnable = [[text for language, rest, text in blocks(text_of(path)) if rest == "run"] for path in pair]
    assert runnable[0] == runnable[1], f"{english} and {chinese} let readers run different commands"
    for own, other in (pair, pair[::-1]):
        targets = {(ROOT / own.parent / link.partition("#")[0]).resolve() for link in LINK.findall(text_of(own))}
        assert (ROOT / other).resolve() in targets, f"{own} does not lead to {other}"


@pytest.mark.parametrize("path", _documents(), ids=str)
def test_links_lead_somewhere(path: Path) -> None:
    dead = []
    for link in LINK.findall(prose(text_of(path))):
        target = link.partition("#")[0]
        if target and "://" not in target and not (ROOT / path.parent / target).exists():
            dead.append(link)
    assert not dead, f"{path}: these lead nowhere: {dead}"


def _written_commands(path: Path) -> Iterator[list[str]]:
    for found in COMMAND.finditer(text_of(path)):
        words = found[1].split()
        if words[0] in COMMANDS or found[0].lstrip().startswith((".venv", "`", "danlu")):
            yield words


def _options(name: str, entry: Entry) -> set[str]:
    """Of a command, or of all commands of a group."""
    found = load(name, entry)
    if isinstance(found, Command):
        return {option for one in found.params for option in (*one.opts, *one.secondary_opts)}
    return {option for inner, below in found.table.items() for option in _options(inner, below)}


@pytest.mark.parametrize(
    "path", [path for path in _documents() if path.name.startswith("README") or path.parts[0] == "docs"], ids=str
)
def test_commands_exist_as_written(path: Path) -> None:
    for words in _written_commands(path):
        text = f"danlu {' '.join(words)}"
        if words[0] in ("is", "on", "up;"):  # prose
            continue
        assert words[0] in COMMANDS, f"{path}: `{text}`: there is no such command"
        options = _options(words[0], COMMANDS[words[0]])
        for word in words[1:]:
            option = word.strip("[],").partition("=")[0]
            if re.fullmatch(r"--?[a-z][a-z-]*", option):
                assert option in options, f"{path}: `{text}`: there is no {option}"


@pytest.mark.parametrize("path", ["README.md", "README.zh.md"])
def test_the_readme_tells_every_command(path: str) -> None:
    text = text_of(Path(path))
    untold = [name for name in COMMANDS if f"`danlu {name}" not in text and name != "version"]
    assert not untold, f"{path} does not tell of danlu {untold}"


def test_the_test_command_is_what_ci_runs() -> None:
    lines = (ROOT / ".ci/run").read_text().splitlines()
    called = [re.split(" --| \\|\\|| &", line)[0] for line in lines if line.startswith(("make", "scripts/"))]
    assert called, ".ci/run calls nothing"
    told = {
        path: {
            line.partition("#")[0].strip() for _, _, text in blocks(text_of(Path(path))) for line in text.splitlines()
        }
        for path in ("README.md", "README.zh.md", "CONTRIBUTING.md")
    }
    for command in called:
        for path in ("README.md", "README.zh.md") if command.startswith("make") else ("CONTRIBUTING.md",):
            assert command in told[path], f"{path} does not tell {command!r}, which .ci/run calls"


def test_make_targets_call_scripts() -> None:
    text = (ROOT / "Makefile").read_text()
    called = re.findall(r"^\t@(scripts/\S+)", text, re.M)
    assert called, "the Makefile calls no script"
    assert not [name for name in called if not os.access(ROOT / name, os.X_OK)]
    contributing = text_of(Path("CONTRIBUTING.md"))
    untold = [str(path) for path in tracked() if path.parts[0] == "scripts" and f"`{path}" not in contributing]
    assert not untold, f"CONTRIBUTING.md does not tell of {untold}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_variable_is_explained(language: str) -> None:
    used = set()
    for path in tracked(".py", ".yaml"):
        if path.parts[0] == "src":
            used |= set(VARIABLE.findall(text_of(path)))
    for path in tracked():
        if path.parts[0] == "scripts":
            used |= set(VARIABLE.findall(text_of(path)))
    told = set(VARIABLE.findall(text_of(Path(f"docs/{language}/reference/environment-variables.md"))))
    assert not used - told, f"docs/{language}/reference/environment-variables.md does not tell of them"
    assert not told - used - {"DANLU_MOUNT_WORKSPACE_DATA"}, "nothing reads or sets them"


@pytest.mark.parametrize("path", ["ARCHITECTURE.md", "CONTRIBUTING.md", "src/danlu/embedded/node/README.md"])
def test_files_that_are_named_exist(path: str) -> None:
    named = set(re.findall(r"`([\w./-]+\.(?:py|yaml|toml|md))`", text_of(Path(path))))
    files = [f"/{one}" for one in tracked()]
    gone = [name for name in named if not any(one.endswith(f"/{name}") for one in files)]
    assert not gone, f"{path} names files that are not there: {gone}"


# ---------------------------------------------------------------- what readers type


def _script(text: str) -> str:
    """All runnable blocks of a document as one bash session, with a mark before each."""
    runnable = [content for language, rest, content in blocks(text) if (language, rest) == ("sh", "run")]
    return "set -eo pipefail\n" + "".join(f"echo; echo '@@ {n}'\n{content}" for n, content in enumerate(runnable))


def _expected(text: str) -> dict[int, list[str]]:
    """Lines that the output of each runnable block must have."""
    found: dict[int, list[str]] = {}
    last = -1
    for language, rest, content in blocks(text):
        if (language, rest) == ("sh", "run"):
            last += 1
        elif (language, rest) == ("text", "expect"):
            found[last] = content.splitlines()
    return found


def _pattern(line: str) -> str:
    """Columns may be wider than in the document; … stands for anything."""
    words = [".*" if word == "…" else re.escape(word) for word in line.split()]
    return r"^\s*" + r"\s+".join(words)


@pytest.mark.e2e
@pytest.mark.timeout(240)
@pytest.mark.parametrize("page", RUN_AS_WRITTEN)
def test_a_page_works_as_written(page: str, need_kubectl: None, tmp_path: Path) -> None:
    """In English; the commands of the Chinese one are the same (`test_languages_keep_step`)."""
    danlu = Danlu(tmp_path)
    text = text_of(Path("docs/en") / page)
    environment = danlu.environment | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "DANLU_HOME": str(danlu.data),
    }
    del environment["KUBECONFIG"]  # the reader exports it
    try:
        done = subprocess.run(
            ["bash", "-c", _script(text)], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=200,
        )  # fmt: skip
    finally:
        danlu.command("down", check=False)
    assert done.returncode == 0, done.stdout
    said = re.split(r"^@@ \d+\n", done.stdout, flags=re.M)[1:]
    for number, lines in _expected(text).items():
        for line in lines:
            assert re.search(_pattern(line), said[number], re.M), f"no line {line!r} in\n{said[number]}"
