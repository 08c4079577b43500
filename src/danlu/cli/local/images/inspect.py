"""`danlu images inspect NAME…`: what an image of the store says of itself, as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass

from danlu.cli.command import CommandOptions, argument
from danlu.cli.language import Text
from danlu.cli.local.images.environmentlookup import image_errors
from danlu.cli.local.images.storelookup import store_of, stored


@dataclass(frozen=True)
class Options(CommandOptions):
    names: tuple[str, ...] = argument(
        "IMAGE", many=True, help=Text("images that `danlu images` lists", "`danlu images` 列出的镜像")
    )


@image_errors
def run(options: Options) -> int:
    store = store_of(options)
    told = []
    for name in options.names:
        canonical, image = stored(store, name)
        told.append(
            {
                "name": canonical,
                "digest": image.digest,
                "size": image.packed,
                "platform": f"{image.config.get('os')}/{image.config.get('architecture')}",
                "created": image.config.get("created"),
                "config": image.config.get("config") or {},
                "layers": [blob for blob, _ in image.layers],
            }
        )
    print(json.dumps(told, indent=2, ensure_ascii=False))
    return 0
