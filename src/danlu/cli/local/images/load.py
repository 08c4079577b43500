"""`danlu images load FILE|-`: images of an archive into the store of this data directory."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from danlu.cli.command import CommandOptions, argument
from danlu.cli.failures import CommandError
from danlu.cli.language import Text
from danlu.cli.local.images.environmentlookup import image_errors
from danlu.cli.local.images.storelookup import store_of
from danlu.cli.progressline import ProgressLine
from danlu.embedded.node.images import archive, reference

LOADING = Text("loading {source}", "正在载入 {source}")
LOADED = Text("loaded {name}", "已载入 {name}")
NAMELESS = Text(
    "{source} gives image {digest} no name; write it again with one: docker save NAME",
    "{source} 没有给镜像 {digest} 命名；请用名称重新导出：docker save 名称",
)
UNREADABLE = Text("{source} cannot be read: {problem}", "无法读取 {source}：{problem}")


@dataclass(frozen=True)
class Options(CommandOptions):
    source: str = argument(
        "FILE|FOLDER|-",
        help=Text(
            "what `docker save` writes, an OCI layout as a tar or a folder, or - for the standard input",
            "`docker save` 写出的文件、OCI layout 的 tar 或目录，或用 - 表示标准输入",
        ),
    )


@image_errors
def run(options: Options) -> int:
    store = store_of(options)
    bar = ProgressLine(LOADING(source=options.source))
    source = sys.stdin.buffer if options.source == "-" else Path(options.source)
    try:
        loaded = archive.load(store, source, bar.show)
    except OSError as error:
        raise CommandError(UNREADABLE(source=options.source, problem=error.strerror or error)) from error
    for image in loaded:
        if not image.name:
            raise CommandError(NAMELESS(source=options.source, digest=image.digest))
        store.unpack(store.image(image.digest))
        bar.done(LOADED(name=reference.parse(image.name).familiar))
    return 0
