"""What the commands about images share: the store of a data directory, and an image of it by its name."""

from __future__ import annotations

from danlu.cli.command import CommandOptions
from danlu.cli.failures import CommandError
from danlu.cli.language import Text, translated
from danlu.cli.place import data_directory
from danlu.embedded.node.images import reference
from danlu.embedded.node.images.imagestore import ImageStore, StoredImage
from danlu.embedded.storage import DataDirectoryError

NOT_HERE = Text(
    "there is no image {name} here; `danlu images` lists them, `danlu images pull {name}` fetches it",
    "本机没有镜像 {name}；`danlu images` 列出镜像，`danlu images pull {name}` 可拉取它",
)


def store_of(options: CommandOptions) -> ImageStore:
    directory = data_directory(options)
    try:
        directory.prepare()
    except DataDirectoryError as error:
        raise CommandError(translated(error)) from error
    return ImageStore(directory.root)


def stored(store: ImageStore, name: str) -> tuple[str, StoredImage]:
    """Its canonical name, and what it is. Raises ImageError."""
    canonical = str(reference.parse(name))
    found = store.find(canonical)
    if found is None:
        raise CommandError(NOT_HERE(name=name))
    return canonical, store.image(found.digest)
