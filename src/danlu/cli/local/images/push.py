"""`danlu images push NAME [AS]`: an image of the store to a registry."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from danlu.cli.command import CommandOptions, argument
from danlu.cli.language import Text
from danlu.cli.local.images.environmentlookup import image_errors
from danlu.cli.local.images.storelookup import store_of, stored
from danlu.cli.place import data_directory
from danlu.cli.transferbar import TransferBar

PUSHING = Text("pushing {name}", "正在推送 {name}")
PUSHED = Text("pushed {name}: {digest}", "已推送 {name}：{digest}")


@dataclass(frozen=True)
class Options(CommandOptions):
    name: str = argument("IMAGE", help=Text("an image that `danlu images` lists", "`danlu images` 列出的镜像"))
    to: str | None = argument(
        "AS",
        default=None,
        help=Text("its name over there, where that is another", "推送时使用的名称（与本机不同时）"),
    )


@image_errors
def run(options: Options) -> int:
    from danlu.embedded.node.images import credentials, onmachine, pusher, reference
    from danlu.embedded.node.images.puller import TransferProgress
    from danlu.embedded.node.images.registrysettings import RegistrySettings

    store = store_of(options)
    name, image = stored(store, options.name)
    onmachine.refuse_elsewhere(reference.parse(name).familiar, image.config)
    to = reference.parse(options.to or options.name)
    bar = TransferBar(PUSHING(name=to.familiar))
    progress = TransferProgress(changed=lambda now: bar.show(now.done, now.total))
    settings = RegistrySettings(data_directory(options).root)
    asyncio.run(pusher.push(store, settings, image, to, credentials.of_account(), progress))
    bar.done(PUSHED(name=to.familiar, digest=image.digest))
    return 0
