"""A whole Dockerfile: stages as they are needed, and the image of the last one, named when it is whole."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from danlu.embedded.node.images import onmachine, reference
from danlu.embedded.node.images.archive import ARCHITECTURES
from danlu.embedded.node.images.building import baseimages, expansion, ignorefile, instructions
from danlu.embedded.node.images.building.baseimages import BaseImages
from danlu.embedded.node.images.building.buildcache import BuildCache
from danlu.embedded.node.images.building.builderrors import BuildError, wrong_line
from danlu.embedded.node.images.building.instructions import Instruction
from danlu.embedded.node.images.building.runstep import Runner, Show
from danlu.embedded.node.images.building.stagebuild import StageBuild, StageContext, Tell
from danlu.embedded.node.images.building.stagestate import StageState
from danlu.embedded.node.images.building.trees import ContextTree, LayersTree, SourceTree
from danlu.embedded.node.images.imagestore import CONFIG, MANIFEST, ImageStore
from danlu.embedded.node.imagesource import ImageError, ImageSource


@dataclass(frozen=True)
class BuildRequest:
    dockerfile: Path
    context: Path
    tags: tuple[str, ...]
    arguments: Mapping[str, str] = field(default_factory=dict)
    target: str = ""
    use_cache: bool = True
    secrets: Mapping[str, Path] = field(default_factory=dict)


class BuiltImage(NamedTuple):
    digest: str
    unused: list[str]  # build arguments that no ARG asked for
    notes: list[str]
    environment: str  # of this machine, that it stands on; "" when it stands on its own


class _Stage(NamedTuple):
    name: str
    base: Instruction
    instructions: list[Instruction]


class ImageBuilder:
    def __init__(self, data_dir: Path, source: ImageSource, *, show: Show, tell: Tell) -> None:
        self.store = ImageStore(data_dir)
        self.data_dir = data_dir
        self.source = source
        self.show = show
        self.tell = tell

    def build(self, request: BuildRequest) -> BuiltImage:
        """Raises ImageError, OSError, UnicodeDecodeError."""
        names = [str(reference.parse(tag)) for tag in request.tags]
        if request.dockerfile.stat().st_size > instructions.LARGEST:
            raise BuildError(f"{request.dockerfile} is larger than {instructions.LARGEST >> 20} MiB")
        parsed = instructions.parse(request.dockerfile.read_text())
        if not request.context.is_dir():
            raise NotADirectoryError(20, "it is not a folder", str(request.context))
        with self.store.adding():
            built = _WholeBuild(self, request, parsed.escape).run(list(parsed.instructions))
            for name in names:
                self.store.name(name, built.digest, by_hand=True)
        return built


class _WholeBuild:
    def __init__(self, builder: ImageBuilder, request: BuildRequest, escape: str) -> None:
        epoch, store = baseimages.epoch(), builder.store
        self._store = store
        self._request = request
        self._escape = escape
        self._bases = BaseImages(store, builder.data_dir, builder.source, epoch)
        self._context = ContextTree(request.context, ignorefile.of_build(request.context, request.dockerfile))
        self._stages: list[_Stage] = []
        self._done: dict[int, StageState] = {}
        self._foreign: dict[str, LayersTree] = {}
        self._outer = _platform()
        self._shared = StageContext(
            store, BuildCache(store, off=not request.use_cache), Runner(store, epoch, builder.show), epoch,
            baseimages.created(epoch), request.arguments, self._outer, request.secrets, self._tree, builder.tell, set(),
        )  # fmt: skip
        self.notes: list[str] = []

    def run(self, found: list[Instruction]) -> BuiltImage:
        for one in found:
            if one.word == "FROM":
                self._stages.append(_Stage(_stage_name(one), one, []))
            elif self._stages:
                self._stages[-1].instructions.append(one)
            else:
                self._outer_argument(one)
        state = self._stage(self._target())
        unused = sorted(self._request.arguments.keys() - self._shared.used)
        stand = onmachine.stated({"config": state.config})
        return BuiltImage(self._put(state), unused, self.notes, stand.environment if stand else "")

    def _outer_argument(self, one: Instruction) -> None:
        name, _, default = one.rest.partition("=")
        if name in self._request.arguments:
            self._shared.used.add(name)
        try:
            value = expansion.expand(default, self._outer, self._escape)
        except expansion.BadExpansion as error:
            raise wrong_line(one.line, error) from None
        self._outer[name] = self._request.arguments.get(name, value)

    def _target(self) -> int:
        wanted = self._request.target
        if not wanted:
            return len(self._stages) - 1
        found = self._number(wanted, len(self._stages))
        if found is None:
            named = ", ".join(stage.name for stage in self._stages if stage.name)
            raise BuildError(f"there is no stage {wanted}; there are {named or 'none with a name'}")
        return found

    def _number(self, name: str, before: int) -> int | None:
        for number in reversed(range(before)):
            if self._stages[number].name == name.lower():
                return number
        return int(name) if name.isdigit() and int(name) < before else None

    def _stage(self, number: int) -> StageState:
        if number not in self._done:
            stage = self._stages[number]
            try:
                words = expansion.words(stage.base.rest, self._outer, self._escape)
            except expansion.BadExpansion as error:
                raise wrong_line(stage.base.line, error) from None
            if not words or not words[0]:
                raise wrong_line(stage.base.line, "FROM needs an image")
            _check_platform(stage.base, self._outer, self._escape)
            state = self._beginning(number, words[0], stage.base.line)
            self._shared.tell(stage.base.line, str(stage.base), True)
            build = StageBuild(state, self._shared)
            build.run(stage.instructions)
            self._done[number] = state
        return self._done[number]

    def _beginning(self, number: int, name: str, line: int) -> StageState:
        before = self._number(name, number) if not name.isdigit() else None
        if before is not None:
            earlier = self._stage(before)
            whole = {**earlier.base.config, "config": earlier.config, "history": earlier.history}
            base = earlier.base.__class__(
                earlier.base.identity, whole, tuple(earlier.layers), earlier.base.machine, earlier.base.env
            )
            return StageState.beginning(base, self._escape)
        try:
            base = self._bases.find(name)
        except BuildError:
            raise
        except ImageError as error:
            raise wrong_line(line, error) from error
        if base.note:
            self.notes.append(base.note)
        return StageState.beginning(base, self._escape)

    def _tree(self, name: str, line: int) -> SourceTree:
        if not name:
            return self._context
        current = max((n for n, stage in enumerate(self._stages) if stage.base.line <= line), default=0)
        number = self._number(name, current)
        if number is not None:
            return self._layers(self._stage(number))
        if name not in self._foreign:
            try:
                base = self._bases.find(name)
            except ImageError as error:
                raise wrong_line(line, error) from error
            self._foreign[name] = self._layers(StageState.beginning(base, self._escape))
        return self._foreign[name]

    def _layers(self, state: StageState) -> LayersTree:
        return LayersTree(StageBuild(state, self._shared).trees())

    def _put(self, state: StageState) -> str:
        """The image itself. The same bits for the same content."""
        base = state.base.config
        about: dict[str, Any] = {
            "architecture": base.get("architecture") or self._outer["TARGETARCH"],
            "os": base.get("os") or "linux",
            **{key: base[key] for key in ("variant", "os.version", "os.features") if key in base},
            "created": self._shared.created,
            **({"author": state.author} if state.author else {}),
            "config": state.config,
            "rootfs": {"type": "layers", "diff_ids": [diff_id for _, diff_id in state.layers]},
            "history": state.history,
        }
        config = _document(about)
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, "digest": self._store.put(config), "size": len(config)},
            "layers": [_as_oci(descriptor) for descriptor, _ in state.layers],
        }
        digest = self._store.put(_document(manifest))
        self._store.image(digest)  # whole, or it gets no name
        return digest


def _document(content: object) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _as_oci(descriptor: dict[str, Any]) -> dict[str, Any]:
    """Docker's name for a packed layer has no place in an OCI manifest."""
    kind = str(descriptor.get("mediaType") or "")
    docker = "application/vnd.docker.image.rootfs.diff.tar"
    if not kind.startswith(docker):
        return descriptor
    packed = kind.removeprefix(docker).replace(".", "+", 1)
    return {**descriptor, "mediaType": f"application/vnd.oci.image.layer.v1.tar{packed}"}


def _stage_name(one: Instruction) -> str:
    one.only_flags("platform")
    words = one.rest.split()
    if len(words) == 3 and words[1].upper() == "AS":
        return words[2].lower()
    if len(words) != 1:
        raise wrong_line(one.line, "FROM needs an image, or an image AS a name")
    return ""


def _platform() -> dict[str, str]:
    machine = ARCHITECTURES.get(platform.machine(), platform.machine())
    found: dict[str, str] = {}
    for side in ("TARGET", "BUILD"):
        found |= {
            f"{side}PLATFORM": f"linux/{machine}",
            f"{side}OS": "linux",
            f"{side}ARCH": machine,
            f"{side}VARIANT": "",
        }
    return found


def _check_platform(one: Instruction, values: Mapping[str, str], escape: str) -> None:
    wanted = expansion.expand(one.flag("platform"), values, escape)
    own = values["TARGETPLATFORM"]
    if wanted and wanted != own and not wanted.startswith(f"{own}/"):
        raise wrong_line(one.line, f"images for {wanted} cannot be built on this machine, which is {own}")
