"""What FROM begins with, in this order: nothing (`scratch`), an image of the store, one of a registry, and where that
cannot be had the environment of this machine that the catalogue has for the name.

An environment is no image: its programs are the machine's. So what is built on one holds only what was added, says in
two labels what it stands on, and runs nowhere else. Its Python gets a virtual environment of the image's own that sees
all that the environment has; that is where `pip install` goes.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from danlu.diagnose import say
from danlu.embedded.node.images import credentials, onmachine, reference
from danlu.embedded.node.images.archive import ARCHITECTURES
from danlu.embedded.node.images.building.layertar import LayerTar
from danlu.embedded.node.images.building.runstep import MachineBelow
from danlu.embedded.node.images.building.stagestate import BaseImage
from danlu.embedded.node.images.imagestore import ImageStore, StoredImage
from danlu.embedded.node.images.registrysettings import RegistrySettings
from danlu.embedded.node.imagesource import ENVIRONMENT, IMAGE, Image, ImageError, ImageSource

SCRATCH = "scratch"


class BaseImages:
    def __init__(self, store: ImageStore, data_dir: Path, source: ImageSource, epoch: int) -> None:
        self._store = store
        self._settings = RegistrySettings(data_dir)
        self._source = source
        self._epoch = epoch

    def find(self, name: str) -> BaseImage:
        """Raises ImageError."""
        if name == SCRATCH:
            return BaseImage(SCRATCH)
        parsed = reference.parse(name)
        preference = self._source.preference(name, "")
        here = self._environment(name) if preference != IMAGE else None
        if here is not None and preference == ENVIRONMENT:
            return self._on_environment(here)
        stored = self._store.find(str(parsed))
        if stored is not None:
            return self._of_image(self._store.image(stored.digest))
        try:
            return self._of_image(self._pulled(parsed))
        except ImageError as error:
            if here is None:
                raise
            return self._on_environment(here, str(error))

    def _pulled(self, parsed: reference.Reference) -> StoredImage:
        from danlu.embedded.node.images.puller import Puller

        if not self._settings.pulls:
            raise ImageError(say("DL-PULL-OFF", image=parsed.familiar, file=str(self._settings.file)))
        digest = asyncio.run(Puller(self._store, self._settings).pull(parsed, credentials.of_account()))
        self._store.name(str(parsed), digest, by_hand=False)
        return self._store.image(digest)

    def _of_image(self, image: StoredImage) -> BaseImage:
        layers = tuple(
            (dict(about), str(diff))
            for about, diff in zip(image.manifest["layers"], image.config["rootfs"]["diff_ids"], strict=True)
        )
        found = onmachine.stated(image.config)
        if found is None:
            return BaseImage(image.digest, image.config, layers)
        stand = onmachine.checked(found, self._source)
        env = onmachine.variables(stand)
        return BaseImage(found.identity, image.config, layers, machine_of(stand), env)

    # -- environments

    def _environment(self, name: str) -> Image | None:
        try:
            found = self._source.resolve(name)
        except ImageError:
            return None
        return found if found.environment and not found.fallback else None

    def _on_environment(self, here: Image, why_not: str = "") -> BaseImage:
        stated = onmachine.Stand(here.name, here.environment, here.environment_digest)
        layers = []
        if here.python:
            with LayerTar(self._store, self._epoch) as tar:
                onmachine.add_virtual_environment(tar, Path(here.python), here.environment)
                layer = tar.finish()
            layers.append((dict(layer.descriptor), layer.diff_id))
        config: dict[str, object] = {"Labels": stated.labels, "WorkingDir": here.workdir}
        if here.cmd:
            config["Cmd"] = [*here.cmd]
        if here.entrypoint:
            config["Entrypoint"] = [*here.entrypoint]
        note = say("DL-BUILD-ON-ENVIRONMENT", image=here.name, environment=here.environment, answer=why_not)
        machine = platform.machine()
        whole: Mapping[str, object] = {
            "architecture": ARCHITECTURES.get(machine, machine), "os": sys.platform, "config": config,
        }  # fmt: skip
        return BaseImage(stated.identity, whole, tuple(layers), machine_of(here), onmachine.variables(here), note)


def machine_of(image: Image) -> MachineBelow:
    """Files that the catalogue gives the image lie where they do in its containers."""
    return MachineBelow(image.folders, {target: os.path.expanduser(source) for target, source in image.files.items()})


def epoch() -> int:
    """The time of all that is built: $SOURCE_DATE_EPOCH, or the first day that zip archives know."""
    stated = os.environ.get("SOURCE_DATE_EPOCH", "")
    return int(stated) if stated.isdigit() else FIRST_DAY


FIRST_DAY = 315619200  # 1980-01-02: west of Greenwich that is not yet 1979


def created(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
