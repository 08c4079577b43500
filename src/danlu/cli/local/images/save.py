"""`danlu images save NAME… -o FILE`: an archive that every engine reads."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from danlu.cli.command import CommandOptions, argument, option
from danlu.cli.failures import CommandError, UsageError
from danlu.cli.language import Text
from danlu.cli.local.images.environmentlookup import image_errors
from danlu.cli.local.images.storelookup import store_of, stored
from danlu.cli.valuetypes import PATH
from danlu.embedded.node.images import archive, onmachine, reference

NO_TARGET = Text("name a file with -o, or lead the output elsewhere", "请用 -o 指定文件，或把输出重定向到别处")
UNWRITABLE = Text("{file} cannot be written: {problem}", "无法写入 {file}：{problem}")


@dataclass(frozen=True)
class Options(CommandOptions):
    names: tuple[str, ...] = argument(
        "IMAGE", many=True, help=Text("images that `danlu images` lists", "`danlu images` 列出的镜像")
    )
    output: Path | None = option(
        "-o",
        "--output",
        metavar="FILE",
        type=PATH,
        help=Text("where to (default: the standard output)", "写到哪里（默认标准输出）"),
    )


@image_errors
def run(options: Options) -> int:
    store = store_of(options)
    images = [stored(store, name) for name in options.names]
    for name, image in images:
        onmachine.refuse_elsewhere(reference.parse(name).familiar, image.config)
    if options.output is None:
        if sys.stdout.isatty():
            raise UsageError(NO_TARGET())
        archive.save(store, images, sys.stdout.buffer)
        return 0
    try:
        with options.output.open("wb") as file:
            archive.save(store, images, file)
    except OSError as error:
        options.output.unlink(missing_ok=True)
        raise CommandError(UNWRITABLE(file=options.output, problem=error.strerror or error)) from error
    return 0
