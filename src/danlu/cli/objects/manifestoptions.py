"""`-f FILE`, for the commands that read manifests, and how a file that cannot be read is told of."""

from __future__ import annotations

from typing import Any

from danlu.cli.command import flag, option
from danlu.cli.failures import CommandError
from danlu.cli.language import Text
from danlu.meta.kind import Kind
from danlu.resources import manifestfiles
from danlu.resources.manifestfiles import Manifest, ManifestError

PROBLEMS = {
    "missing": Text("there is no file {place}", "没有 {place} 这个文件"),
    "empty": Text(
        "{place} holds no objects; folders are read for *.yaml, *.yml, *.json",
        "{place} 中没有对象；文件夹中读取 *.yaml、*.yml、*.json",
    ),
    "unreadable": Text(
        "{place} cannot be read: {problem}; nothing was changed", "无法读取 {place}：{problem}；未做任何改动"
    ),
    "no-object": Text(
        "{place} holds something that is no Kubernetes object: apiVersion and kind are missing; nothing was changed",
        "{place} 中有内容不是 Kubernetes 对象：缺少 apiVersion 和 kind；未做任何改动",
    ),
    "no-name": Text(
        "{place}: a {problem} has no metadata.name; nothing was changed",
        "{place}：有一个 {problem} 没有 metadata.name；未做任何改动",
    ),
}


def files(help: Text) -> Any:
    return option("-f", "--filename", metavar="FILE", multiple=True, help=help)


def recursive() -> Any:
    return flag("-R", "--recursive", help=Text("folders within folders, too", "包括子文件夹"))


def read(places: tuple[str, ...], deep: bool) -> list[Manifest]:
    try:
        return manifestfiles.read(places, deep=deep)
    except ManifestError as error:
        raise CommandError(told(error)) from error


def told(error: ManifestError) -> str:
    text = PROBLEMS[error.code]
    facts = {"place": error.place, "problem": error.problem}
    return text(**{name: value for name, value in facts.items() if f"{{{name}}}" in text.en})


def home(kind: Kind, manifest: Manifest, namespace: str) -> str | None:
    return (manifest.namespace or namespace) if kind.namespaced else None
