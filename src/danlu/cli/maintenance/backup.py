"""`danlu backup FILE`: all objects at one revision, verified, in one file. The server may run meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from danlu import __version__
from danlu.cli.command import CommandOptions, argument, flag
from danlu.cli.failures import CommandError
from danlu.cli.language import Count, Text, translated
from danlu.cli.place import data_directory, stopped
from danlu.cli.valuetypes import PATH
from danlu.embedded.storage.backup import KEYS, BackupError, make

MADE = Text(
    "{file}: {count:object|objects} at revision {revision}, {size:,} bytes, verified",
    "{file}：修订版 {revision} 的 {count} 个对象，{size:,} 字节，已校验",
)
WITHOUT_KEYS = Text(
    "without keys: secrets in it can be read only with the key file (`danlu encryption`), or use --with-keys",
    "不含密钥：其中的 Secret 只有用密钥文件（见 `danlu encryption`）才能读取，或改用 --with-keys",
)
WITHOUT_VOLUMES = Text(
    "volumes are not in it: copy them from the data directory by other means",
    "不含存储卷：请用其他方式从数据目录复制",
)


@dataclass(frozen=True)
class Options(CommandOptions):
    file: Path = argument(
        "FILE",
        type=PATH,
        help=Text("where to write it; replaced when it is there", "写到哪里；已有的文件会被替换"),
    )
    with_keys: bool = flag(
        "--with-keys",
        help=Text(
            "also the certificates and all keys, those of encrypted secrets too: whoever has the file has everything",
            "连同证书和全部密钥，包括加密 Secret 的密钥：拿到这个文件就拿到了一切",
        ),
    )


def run(options: Options) -> int:
    directory = data_directory(options)
    target = options.file.expanduser().absolute()
    extra = [*sorted(directory.certificates.glob("*")), directory.root / KEYS] if options.with_keys else []
    try:
        if directory.holder() is not None:
            made = make(directory.database, target, __version__, running=True, extra=extra)
        else:
            with stopped(directory, "backup"):
                made = make(directory.database, target, __version__, running=False, extra=extra)
    except BackupError as error:
        raise CommandError(translated(error)) from error
    count = Count(len(made.current()))
    print(MADE(file=target, count=count, revision=made.revision, size=target.stat().st_size))
    if not options.with_keys:
        print(WITHOUT_KEYS())
    print(WITHOUT_VOLUMES())
    return 0
