"""`danlu images pull NAME…`: images from their registries into the store."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from danlu.cli.command import CommandOptions, argument
from danlu.cli.language import Text
from danlu.cli.local.images.environmentlookup import image_errors
from danlu.cli.local.images.storelookup import store_of
from danlu.cli.place import data_directory
from danlu.cli.transferbar import TransferBar

PULLING = Text("pulling {name}", "正在拉取 {name}")
PULLED = Text("pulled {name}: {digest}", "已拉取 {name}：{digest}")


@dataclass(frozen=True)
class Options(CommandOptions):
    names: tuple[str, ...] = argument(
        "IMAGE", many=True, help=Text("as `docker pull` takes it", "与 `docker pull` 的写法相同")
    )


@image_errors
def run(options: Options) -> int:
    from danlu.embedded.node.images import credentials, reference
    from danlu.embedded.node.images.puller import Puller, TransferProgress
    from danlu.embedded.node.images.registrysettings import RegistrySettings

    store = store_of(options)
    settings = RegistrySettings(data_directory(options).root)
    for name in options.names:
        wanted = reference.parse(name)
        bar = TransferBar(PULLING(name=wanted.familiar))
        progress = TransferProgress(changed=lambda now, bar=bar: bar.show(now.done, now.total))  # type: ignore[misc]
        digest = asyncio.run(Puller(store, settings).pull(wanted, credentials.of_account(), progress))
        store.name(str(wanted), digest, by_hand=True)
        bar.done(PULLED(name=wanted.familiar, digest=digest))
    return 0
