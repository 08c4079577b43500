"""The folder of every kind: examples are valid, forms name fields that exist, generated files are current."""

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
from danlu.kinds.registry import REGISTRY, T9K_SCHEDULER
from danlu.meta.schema import Schema, structural

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
        for kind in (*REGISTRY, *T9K_SCHEDULER)
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
