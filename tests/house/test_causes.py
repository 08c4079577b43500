"""What our controllers warn of carries a code: nobody then has to read the sentence to say it in another language."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.house.tree import ROOT

from danlu.diagnose import Cause, tables

CODE = re.compile(r"DL-[A-Z0-9-]+[A-Z0-9]")
BEGINNINGS = {"DL-CLAIM", "DL-NODE", "DL-CONFIG"}  # of several codes
PARTS = ("kinds", "embedded/node", "embedded/scheduler", "operator", "runtime")
TELL = {"EventNote", "warning", "tell", "_event"}
LOGS = {"log", "_sparingly"}  # for whoever runs the operator, not for whoever owns an object


def test_what_is_told_carries_a_code() -> None:
    assert set(_plainly_told()) == set(), "say it by danlu.diagnose.say or stated"


def test_every_code_that_is_used_is_in_the_table() -> None:
    used = {code for path in (ROOT / "src/danlu").rglob("*.py") for code in CODE.findall(path.read_text())}
    assert len(used) > 40, "codes are no longer found"
    assert used - BEGINNINGS - set(tables.templates()) == set(), "write them into causes.yaml"


# In the words of Kubernetes, or of the operators of Kubeflow and TensorStack, where these run.
ALSO_SAID_BY_OTHERS = {
    "DL-ENVIRONMENT-NOT-BUILT", "DL-QUOTA", "DL-QUOTA-ASKS", "DL-NO-PRIORITY", "DL-CLAIM-BLOCK", "DL-CLAIM-MISSING",
    "DL-CONFIG",
    "DL-JOB-CREATED", "DL-JOB-RUNNING", "DL-JOB-SUSPENDED", "DL-JOB-RESUMED", "DL-JOB-COMPLETED", "DL-JOB-IS-COMPLETED",
    "DL-JOB-IS-FAILING", "DL-JOB-BACKOFF", "DL-JOB-LATE", "DL-JOB-DELETED", "DL-JOB-TERMINATED", "DL-POD-CREATED",
    "DL-POD-DELETED", "DL-SERVICE-DELETED", "DL-PODGROUP-DELETED", "DL-RESTARTING",
    "DL-SERVED-CREATED", "DL-JOB-INITIALIZED", "DL-JOB-GOES-ON", "DL-JOB-FINISHED", "DL-JOB-PAUSED", "DL-JOB-UNPAUSED",
    "DL-REPLICA-CREATED", "DL-REPLICA-FAILED",
}  # fmt: skip


def test_no_pattern_reads_a_sentence_of_ours() -> None:
    read = {code for code in tables.templates() if _is_read(code)}
    assert read - ALSO_SAID_BY_OTHERS == set(), "it carries a code: strike the pattern out of kubernetes.yaml"


def _is_read(code: str) -> bool:
    params = {name: "x" for name in tables.templates()[code].names if name != tables.MORE}
    sentence = Cause(code, params).sentence()
    return sentence != "x" and any(pattern.search(sentence) for pattern, _ in tables.sentences())


def _plainly_told() -> Iterator[tuple[str, str]]:
    """Of warnings, and of all that the kinds tell, whose message is written in the same function: file and reason."""
    for part in PARTS:
        for path in sorted((ROOT / "src/danlu" / part).rglob("*.py")):
            for function in ast.walk(ast.parse(path.read_text())):
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                    where = str(path.relative_to(ROOT / "src/danlu"))
                    yield from ((where, reason) for reason in _plain_in(function, whatever=part == "kinds"))


def _plain_in(function: ast.AST, *, whatever: bool) -> Iterator[str]:
    nodes = [*ast.walk(function)]
    written = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and _is_text(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes:
        if not isinstance(node, ast.Call) or not node.args or not (_warns(node) or (whatever and _tells(node))):
            continue
        last = node.args[-1]
        if _is_text(last) or (isinstance(last, ast.Name) and last.id in written):
            stated = (one.value for one in node.args if isinstance(one, ast.Constant) and one.value != "Warning")
            yield str(next(stated, ast.unparse(node.args[0])))


def _tells(call: ast.Call) -> bool:
    """An event or a condition, whether it warns or not."""
    return getattr(call.func, "attr", "") in TELL | {"add", "set", "normal", "event"} and len(call.args) > 1


def _warns(call: ast.Call) -> bool:
    name = getattr(call.func, "attr", "") or getattr(call.func, "id", "")
    asked = getattr(call.func, "value", None)
    logs = (getattr(asked, "attr", "") or getattr(asked, "id", "")) in LOGS
    marked = any(isinstance(one, ast.Constant) and one.value == "Warning" for one in call.args)
    return name in TELL and not logs and (name == "warning" or marked)


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.JoinedStr) or (isinstance(value, ast.Constant) and " " in str(value.value))


# Where messages are read: by the table, and what stands in it by name.
READERS = ("src/danlu/diagnose/", "src/danlu/meta/said.py", "web/src/why/", "web/src/kube/tail.ts")
READING = re.compile(
    r"""\.(?:test|exec|search|match|fullmatch|findall)\((?:\w+\.)?message\b"""
    r"""|\bmessage\.(?:match|matchAll|search|includes|startsWith|endsWith|startswith|endswith|index|find)\("""
    r"""|["'] in \w+\.message\b"""
)


def test_nobody_else_reads_messages() -> None:
    files = [*(ROOT / "src/danlu").rglob("*.py"), *(ROOT / "web/src").rglob("*.ts*")]
    found = {
        f"{where}: {line.strip()}"
        for path in files
        if ".test." not in path.name and not (where := str(path.relative_to(ROOT))).startswith(READERS)
        for line in path.read_text().splitlines()
        if READING.search(line)
    }
    assert found == set(), "give it a sign in kubernetes.yaml, and ask `recognise` for its code"
