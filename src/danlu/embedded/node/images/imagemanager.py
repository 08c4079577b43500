"""`ImageManager`: an image for a container, by the way that it goes.

Where the catalogue has an environment of this machine for a name, that comes first: it is here, and quick. What
somebody loaded, pulled or built by hand comes before it. Then the image itself, from the store or its registry, as the
container's pull policy says; then what the catalogue has for names that it does not know, if it has anything.
`preference` of the catalogue decides otherwise for an image or a namespace.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from danlu import errors
from danlu.client.client import Client
from danlu.diagnose import say, stated
from danlu.embedded.node.images import credentials, imageconfig, reference
from danlu.embedded.node.images.credentials import RegistryKeyring
from danlu.embedded.node.images.imagestore import ImageStore, Named
from danlu.embedded.node.images.reference import Reference
from danlu.embedded.node.images.registrysettings import RegistrySettings
from danlu.embedded.node.images.ways import Ways
from danlu.embedded.node.imagesource import ENVIRONMENT, IMAGE, Image, ImageError, ImageSource
from danlu.meta.kind import Object
from danlu.meta.said import Said, carried
from danlu.meta.wellknown import SECRET

ALWAYS, IF_NOT_PRESENT, NEVER = "Always", "IfNotPresent", "Never"
UNREACHABLE_FOR_S = 60.0  # a registry that nobody could reach is not asked again for a name that runs without it
LEAST_IDLE_S = 120.0  # an image younger than this is about to be used; kubelet's own

Tell = Callable[[str, str, str], None]  # type, reason and message of an event


class Provided(NamedTuple):
    image: Image
    pulled: str = ""  # what its Pulled event says; "": it was there


class NeverPulled(ImageError):
    reason = "ErrImageNeverPull"


class ImageRequest(NamedTuple):
    """An image as one container asks for it."""

    name: str
    namespace: str
    policy: str
    reference: Reference


class ImageManager:
    def __init__(self, data_dir: Path, source: ImageSource, *, shared: bool = False) -> None:
        """`shared`: people who need not trust each other; what this account has logged in to is not theirs."""
        self.source = source
        self.store = ImageStore(data_dir)
        self.settings = RegistrySettings(data_dir)
        self.can_run: Callable[[], bool] = lambda: True  # whether a container can have a file tree of its own
        self._own_keyring: Callable[[], RegistryKeyring] = RegistryKeyring if shared else credentials.of_account
        self.layers_in_use: Callable[[], Iterable[str]] = lambda: ()  # of containers that run
        self._noted: dict[str, float] = {}  # name -> when its use was last written down
        self._ready: dict[tuple[str, str], Image] = {}  # (name, digest) -> as it was unpacked
        self._pulls: dict[str, asyncio.Task[tuple[str, float]]] = {}  # reference -> its digest, and when it began
        self._unreachable: dict[str, tuple[float, ImageError]] = {}  # registry -> since when, and what was said
        self.ways = Ways(self.store.root)

    def prepare(self) -> None:
        self.source.prepare()

    async def provide(self, pod: Object, container: Object, client: Client, tell: Tell) -> Provided:
        """Raises ImageError."""
        found = await self._provide(pod, container, client, tell)
        image = found.image
        digest = image.id.partition("@")[2] if image.layers else ""
        with contextlib.suppress(OSError):  # a full disk: it is a note, and no more
            self.ways.went(image.name, image=digest, environment=image.environment, replaced=bool(image.note))
        return found

    async def _provide(self, pod: Object, container: Object, client: Client, tell: Tell) -> Provided:
        name, namespace = container.get("image") or "", pod["metadata"]["namespace"]
        preference = self.source.preference(name, namespace)
        if preference == ENVIRONMENT:
            return Provided(self._stand_in(name, tell))
        wanted = self._wanted(name, namespace, container)
        stored = self.store.find(str(wanted.reference)) if wanted else None
        by_hand = stored is not None and stored.by_hand
        here, problem = self._known(name)
        if here is not None and not here.fallback and preference != IMAGE and not by_hand:
            return Provided(here)
        try:
            if wanted is None:
                reference.parse(name)  # which says what is wrong with it
                raise AssertionError(name)
            return await self._real(wanted, stored, pod, client, tell, only_way=here is None or preference == IMAGE)
        except ImageError as error:
            if here is None or preference == IMAGE:
                raise problem if problem is not None and not self.settings.pulls and stored is None else error from None
            return Provided(_noted(here, error) if self.settings.pulls and wanted else here)

    def remove_unused(self) -> None:
        """The disk runs short: what nothing leads to goes, and images that no container runs and nobody has asked for
        a while. Those that somebody put here by hand stay: nobody could fetch them again.
        """
        self.source.remove_unused()
        in_use = {Path(layer).name for layer in self.layers_in_use()}
        for name, entry in self.store.names().items():
            if not entry.by_hand and time.time() - entry.used > LEAST_IDLE_S and not self._runs(entry, in_use):
                self.store.forget(name)
        self.store.sweep(in_use)

    def _runs(self, entry: Named, in_use: set[str]) -> bool:
        try:
            layers = self.store.image(entry.digest).layers
        except ImageError:
            return False
        return bool(layers) and all(self.store.tree(diff_id).name in in_use for _, diff_id in layers)

    # -- what stands for it here

    def _known(self, name: str) -> tuple[Image | None, ImageError | None]:
        try:
            return self.source.resolve(name), None
        except ImageError as error:
            return None, error

    def _stand_in(self, name: str, tell: Tell) -> Image:
        try:
            return self.source.resolve(name)
        except ImageError:
            tell("Normal", "Pulling", f'Pulling image "{name}"')
            raise

    # -- the image itself

    def _wanted(self, name: str, namespace: str, container: Object) -> ImageRequest | None:
        try:
            parsed = reference.parse(name)
        except reference.InvalidName:
            return None
        usual = ALWAYS if parsed.tag == reference.LATEST and not parsed.digest else IF_NOT_PRESENT
        return ImageRequest(name, namespace, container.get("imagePullPolicy") or usual, parsed)

    async def _real(
        self, wanted: ImageRequest, stored: Named | None, pod: Object, client: Client, tell: Tell, *, only_way: bool
    ) -> Provided:
        """`only_way`: nothing else runs in its place, so what could not be reached a moment ago is asked again."""
        if not self.can_run():
            raise ImageError(say("DL-IMAGE-NEEDS-NAMESPACES", image=wanted.name))
        if stored is not None and (wanted.policy != ALWAYS or not self.settings.pulls):
            return Provided(await self._runnable(wanted, stored.digest))
        if wanted.policy == NEVER:
            raise NeverPulled(say("DL-PULL-NEVER", image=wanted.name))
        if not self.settings.pulls:
            raise ImageError(say("DL-PULL-OFF", image=wanted.name, file=str(self.settings.file)))
        since, told = self._unreachable.get(wanted.reference.registry, (0.0, ImageError()))
        if not only_way and since and time.monotonic() - since < UNREACHABLE_FOR_S:
            raise told
        tell("Normal", "Pulling", f'Pulling image "{wanted.name}"')
        asked = time.monotonic()
        try:
            digest, began = await self._pulled(wanted.reference, await self._keyring(pod, client, tell))
        except ImageError as error:
            if getattr(error, "offline", False):
                self._unreachable[wanted.reference.registry] = (time.monotonic(), error)
            # By hand: nobody else has it, perhaps. And what was pulled once is better than what stands in for it.
            if stored is not None and (stored.by_hand or not only_way):
                return Provided(await self._runnable(wanted, stored.digest))
            raise
        self._unreachable.pop(wanted.reference.registry, None)
        now = time.monotonic()
        size = self.store.image(digest).packed
        text = f'Successfully pulled image "{wanted.name}" in {_seconds(now - max(began, asked))}'
        text += f" ({_seconds(now - asked)} including waiting). Image size: {size} bytes."
        return Provided(await self._runnable(wanted, digest), text)

    async def _runnable(self, wanted: ImageRequest, digest: str) -> Image:
        known = self._ready.get((wanted.name, digest))
        if known is None or not _is_there(known):
            known = await asyncio.to_thread(self._unpacked, wanted, digest)
            self._ready[wanted.name, digest] = known
        name, now = str(wanted.reference), time.monotonic()
        if now - self._noted.get(name, -LEAST_IDLE_S) > LEAST_IDLE_S / 2:
            self._noted[name] = now
            await asyncio.to_thread(self.store.used, name)
        return known

    def _unpacked(self, wanted: ImageRequest, digest: str) -> Image:
        image = self.store.image(digest)
        return imageconfig.runnable(wanted.name, wanted.reference, image, self.store.unpack(image), self.source)

    async def _pulled(self, wanted: Reference, keyring: RegistryKeyring) -> tuple[str, float]:
        """Containers that ask for one image at the same time wait for one pull, with the secrets of the first."""
        name = str(wanted)
        task = self._pulls.get(name)
        if task is None:
            task = self._pulls[name] = asyncio.create_task(self._pull(wanted, keyring))
            task.add_done_callback(lambda done: self._pull_ended(name, done))
        return await asyncio.shield(task)

    def _pull_ended(self, name: str, task: asyncio.Task[tuple[str, float]]) -> None:
        self._pulls.pop(name, None)
        if not task.cancelled():
            task.exception()  # whoever waits is told; perhaps nobody does any more

    async def _pull(self, wanted: Reference, keyring: RegistryKeyring) -> tuple[str, float]:
        from danlu.embedded.node.images.puller import Puller

        began = time.monotonic()
        digest = await Puller(self.store, self.settings).pull(wanted, keyring)
        await asyncio.to_thread(self.store.name, str(wanted), digest, by_hand=False)
        return digest, began

    async def _keyring(self, pod: Object, client: Client, tell: Tell) -> RegistryKeyring:
        """What the pod's secrets say first, then what this account has logged in to."""
        ring, missing = RegistryKeyring(), []
        for ref in pod["spec"].get("imagePullSecrets") or ():
            name = ref.get("name") or ""
            try:
                ring += credentials.of_secret(await client.get(SECRET, name, pod["metadata"]["namespace"]), name)
            except errors.ApiError:
                missing.append(name)
        if missing:
            tell("Warning", "FailedToRetrieveImagePullSecret", stated("DL-PULL-SECRET", names=", ".join(missing)))
        return ring + self._own_keyring()


def _is_there(image: Image) -> bool:
    return all(Path(layer).is_dir() for layer in image.layers)


def _seconds(duration: float) -> str:
    """As Go writes a duration."""
    return f"{round(duration * 1000)}ms" if duration < 1 else f"{duration:.3f}".rstrip("0").rstrip(".") + "s"


def _noted(image: Image, error: ImageError) -> Image:
    """What runs in its place says why the image itself does not."""
    causes = carried(image.note)
    if not causes:
        return image
    problem = error.args[0] if error.args else ""
    answer = next((one["params"].get("answer") for one in carried(problem) if "answer" in one.get("params", {})), "")
    first = causes[0]
    return replace(image, note=_said(first["code"], {**first["params"], "pull": answer or str(problem)}))


def _said(code: str, params: dict[str, str]) -> Said:
    found = say(code, **params)
    return found if isinstance(found, Said) else Said(found)
