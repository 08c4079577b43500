"""What a stage has come to: its layers, and the configuration that its image will have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from danlu.embedded.node.images.building import expansion
from danlu.embedded.node.images.building.builderrors import wrong_line
from danlu.embedded.node.images.building.layertar import BuiltLayer
from danlu.embedded.node.images.building.runstep import MachineBelow
from danlu.embedded.node.imagesource import DEFAULT_PATH

SHELL = ["/bin/sh", "-c"]


@dataclass(frozen=True)
class BaseImage:
    """What FROM begins with."""

    identity: str  # changes with what it is
    config: Mapping[str, Any] = field(default_factory=dict)  # the OCI configuration, whole
    layers: tuple[tuple[dict[str, Any], str], ...] = ()  # descriptor, digest of its tar
    machine: MachineBelow | None = None  # an environment of this machine
    env: Mapping[str, str] = field(default_factory=dict)  # of that environment; not in the configuration
    note: str = ""


@dataclass
class StageState:
    base: BaseImage
    escape: str
    config: dict[str, Any] = field(default_factory=dict)  # its section `config`
    layers: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    arguments: dict[str, str] = field(default_factory=dict)
    author: str = ""
    has_cmd: bool = False  # stated here, not by the base

    @classmethod
    def beginning(cls, base: BaseImage, escape: str) -> StageState:
        whole: Mapping[str, Any] = json.loads(json.dumps(base.config))  # a copy
        return cls(
            base, escape, dict(whole.get("config") or {}), list(base.layers), list(whole.get("history") or []),
            author=str(whole.get("author") or ""),
        )  # fmt: skip

    # -- what the words need

    @property
    def env(self) -> dict[str, str]:
        stated = dict(line.partition("=")[::2] for line in self.config.get("Env") or ())
        return {"PATH": DEFAULT_PATH} | dict(self.base.env) | stated

    @property
    def values(self) -> dict[str, str]:
        """Of variables, as instructions see them: ENV goes before ARG."""
        return self.arguments | self.env

    @property
    def cwd(self) -> str:
        return str(self.config.get("WorkingDir") or "/")

    @property
    def shell(self) -> list[str]:
        return list(self.config.get("Shell") or SHELL)

    @property
    def user(self) -> str:
        return str(self.config.get("User") or "")

    @property
    def chain(self) -> list[str]:
        """What the next step stands on."""
        return [self.base.identity if self.base.machine else "", *(diff_id for _, diff_id in self.layers)]

    def expand(self, text: str, line: int) -> str:
        try:
            return expansion.expand(text, self.values, self.escape)
        except expansion.BadExpansion as error:
            raise wrong_line(line, error) from None

    def words(self, text: str, line: int) -> list[str]:
        try:
            return expansion.words(text, self.values, self.escape)
        except expansion.BadExpansion as error:
            raise wrong_line(line, error) from None

    def pairs(self, text: str, line: int) -> dict[str, str]:
        try:
            return expansion.pairs(text, self.values, self.escape)
        except expansion.BadExpansion as error:
            raise wrong_line(line, error) from None

    # -- what they do

    def set_env(self, more: Mapping[str, str]) -> None:
        stated = dict(line.partition("=")[::2] for line in self.config.get("Env") or ())
        self.config["Env"] = [f"{name}={value}" for name, value in (stated | dict(more)).items()]

    def record(self, told: str, created: str, layers: list[BuiltLayer]) -> None:
        for layer in layers:
            self.layers.append((layer.descriptor, layer.diff_id))
        entry = {"created": created, "created_by": told, "comment": "danlu"}
        self.history.append(entry if layers else {**entry, "empty_layer": True})
