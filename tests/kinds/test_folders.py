"""The folder of every kind: examples are valid, forms and console pages name fields that exist, generated files are
current."""

from __future__ import annotations

import copy
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from danlu.kinds.crd import object_schema
from danlu.kinds.platform import PlatformKind
from danlu.kinds.registry import EVERY, folder_of
from danlu.meta.schema import Schema, structural
from danlu.meta.wellknown import POD, STATEFUL_SET

ROOT = Path(__file__).parent.parent.parent
KINDS = ROOT / "src/danlu/kinds"
WIDGETS = {"text", "number", "switch", "select", "quantity", "command", "variables", "volumes", "claim"}
WIDGETS |= {"secrets", "scheduler", "resources", "devices", "labels"}


SCHEMAS: dict[str, Schema] = {}


def schema_of(kind: PlatformKind) -> Schema:
    name = kind.kind.resource
    if name not in SCHEMAS:
        SCHEMAS[name] = structural(object_schema(kind))
    return SCHEMAS[name]


def with_file(name: str) -> list[Any]:
    """Only kinds that have the file."""
    return [
        pytest.param(kind, KINDS / kind.kind.singular_name / name, id=kind.kind.singular_name)
        for kind in EVERY
        if (KINDS / kind.kind.singular_name / name).exists()
    ]


@pytest.mark.parametrize(("kind", "path"), with_file("example.yaml"))
def test_the_example_is_valid(kind: PlatformKind, path: Path) -> None:
    for obj in yaml.safe_load_all(path.read_text()):
        if obj["kind"] != kind.kind.kind:
            continue
        given = copy.deepcopy(obj)
        decoded = schema_of(kind).decode(given)
        assert not decoded.unknown
        assert decoded.problem is None
        assert [error.message() for error in schema_of(kind).validate(given)] == []


@pytest.mark.parametrize(("kind", "path"), with_file("form.yaml"))
def test_every_field_of_the_form_exists_and_speaks_both_languages(kind: PlatformKind, path: Path) -> None:
    form = yaml.safe_load(path.read_text())
    assert set(form["title"]) == {"zh", "en"}
    for section in form["sections"]:
        assert set(section.get("help", form["title"])) == set(section.get("add", form["title"])) == {"zh", "en"}
    for section, field in fields(form):
        assert field["widget"] in WIDGETS, field
        for words in (
            section["title"],
            section.get("switch", form["title"]),
            field["label"],
            field.get("help", form["title"]),
        ):
            assert set(words) == {"zh", "en"}, words
        for other in (section.get("at"), field.get("when")):
            assert other is None or schema_of(kind).element(*steps(other)) is not None, f"{path}: {other} is no field"
        assert ("switch" in section) == ("at" in section), section
        place = steps(field["path"])
        if section.get("each"):
            each = schema_of(kind).element(*steps(section["each"]))
            assert each is not None, f"{path}: {section['each']} is no field of {kind.kind.kind}"
            place = [*steps(section["each"]), 0 if each.items is not None else "any", *place]
        if place[0] == "metadata":
            continue  # every object has it
        node = schema_of(kind).element(*place)
        assert node is not None, f"{path}: {field['path']} is no field of {kind.kind.kind}"
        assert (field["widget"] == "select") == ("options" in field), field


def described(kind: PlatformKind) -> dict[str, Any]:
    """What the folder's console.yaml says of the kind, also of one that the folder brings along."""
    said: dict[str, Any] = yaml.safe_load((folder_of(kind) / "console.yaml").read_text())
    return next((said | one for one in said.get("also", ()) if one["kind"] == kind.kind.kind), said)


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.kind.singular_name)
def test_the_console_is_told_where_the_kind_is_served(kind: PlatformKind) -> None:
    said = described(kind)
    told = (said["apiVersion"], said["kind"], said["plural"], said.get("namespaced", True))
    assert told == (kind.kind.api_version, kind.kind.kind, kind.kind.plural, kind.kind.namespaced)


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.kind.singular_name)
def test_the_console_looks_at_fields_that_exist(kind: PlatformKind) -> None:
    said = described(kind)
    if kind.kind.kind != yaml.safe_load((folder_of(kind) / "console.yaml").read_text())["kind"]:
        said.pop("page")  # of the folder's own kind
    for path in paths(said):
        place = steps(path)
        if place[0] != "metadata":
            assert schema_of(kind).element(*place) is not None, f"{kind.kind.kind}: {path} is no field"


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.kind.singular_name)
def test_what_the_console_opens_is_declared(kind: PlatformKind) -> None:
    page = described(kind).get("page")
    actions = page.get("actions", ()) if isinstance(page, dict) else ()
    assert any(action["do"] == "open" for action in actions) == (kind.app is not None)


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.kind.singular_name)
def test_what_has_pods_can_be_told_to_let_them_go(kind: PlatformKind) -> None:
    """Else a queue whose `maxDuration` is over could only delete them, and they would be made anew."""
    assert (kind.suspension is not None) == bool({POD, STATEFUL_SET} & {*kind.owns})
    if kind.suspension is None:
        return
    assert schema_of(kind).element(*steps(kind.suspension.path)) is not None
    pauses = described(kind).get("job", {}).get("pause")
    assert pauses in (None, kind.suspension.path), "the console pauses it by another field"


def test_apps_have_paths_of_their_own() -> None:
    """Also beside the services of Kubernetes, which anybody may open who may reach them."""
    plurals = [kind.kind.plural for kind in EVERY if kind.app is not None]
    assert len({*plurals, "services"}) == len(plurals) + 1


@pytest.mark.parametrize(("kind", "path"), with_file("form.yaml"))
def test_forms_offer_objects_of_kinds_that_exist(kind: PlatformKind, path: Path) -> None:
    known = {one.kind.kind for one in EVERY}
    assert {field["names"] for _, field in fields(yaml.safe_load(path.read_text())) if "names" in field} <= known
    assert all(
        "names" in field for _, field in fields(yaml.safe_load(path.read_text())) if field["widget"] == "scheduler"
    )


def paths(said: Any) -> Iterator[str]:
    """Every text below that looks like a field's path."""
    if isinstance(said, dict):
        for key, value in said.items():
            yield from (key,) if re.fullmatch(PATH, str(key)) else ()
            yield from paths(value)
    elif isinstance(said, list):
        for value in said:
            yield from paths(value)
    elif isinstance(said, str) and re.fullmatch(PATH, said):
        yield said


PATH = r"(spec|status|metadata)(\.[\w\\./-]+)+"


def fields(form: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for section in form["sections"]:
        for field in section["fields"]:
            yield section, field


def steps(path: str) -> list[str | int]:
    words = [word.replace("\\.", ".") for word in re.split(r"(?<!\\)\.", path)]
    return [int(word) if word.isdigit() else word for word in words]


def test_generated_files_are_what_the_kinds_say() -> None:
    done = subprocess.run([ROOT / "scripts/generate-deploy", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
