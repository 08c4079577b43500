"""`danlu encryption`: which key secrets are encrypted with, where it lies; `rotate` makes a new one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from danlu.cli import layout
from danlu.cli.command import CommandOptions, argument
from danlu.cli.failures import CommandError
from danlu.cli.language import Text
from danlu.cli.place import data_directory, stopped
from danlu.cli.valuetypes import Choice
from danlu.embedded.storage import SqliteJournal
from danlu.embedded.storage.encryption import Keyring, default_key_file

ENCRYPTED = Text("encrypted", "已加密")
KEY_FILE = Text("key file", "密钥文件")
KEY = Text("key", "密钥")
MADE_LATER = Text("{path} (made when the first secret is stored)", "{path}（存入第一个 Secret 时生成）")
OF = Text("{key} of {created}", "{key}，生成于 {created}")
UNTIL_NEXT_START = Text("{key} of {created}, until the next start", "{key}，生成于 {created}，用到下次启动为止")
DAMAGED = Text(
    "{path} has keys that cannot be read; put a good copy of it in place first",
    "{path} 中有无法读取的密钥；请先换上完好的副本",
)
EMPTY = Text("there is nothing in {root} yet; `danlu up` makes it", "{root} 中还没有内容；`danlu up` 会创建它")
ROTATED = Text(
    "secrets are encrypted with the new key {key}; older keys are gone from {path}",
    "Secret 已改用新密钥 {key} 加密；旧密钥已从 {path} 删除",
)
OLD_BACKUPS = Text(
    "backups from before need the key file of their time, unless they were made with --with-keys",
    "此前的备份需要当时的密钥文件，除非它们是用 --with-keys 制作的",
)


@dataclass(frozen=True)
class Options(CommandOptions):
    what: str = argument(
        "status|rotate",
        type=Choice(("status", "rotate")),
        default="status",
        help=Text("tell of the key (default), or make a new one", "查看密钥（默认），或生成新的密钥"),
    )


def run(options: Options) -> int:
    directory = data_directory(options)
    path = default_key_file(directory.database)
    if options.what == "status":
        keyring = Keyring(path)
        print("\n".join(layout.facts([*_facts(keyring, path)])))
        return 0
    with stopped(directory, "encryption rotate"):
        keyring = Keyring(path)
        if keyring.damaged:
            raise CommandError(DAMAGED(path=path))
        if not directory.database.exists():
            raise CommandError(EMPTY(root=directory.root))
        new = keyring.add()
        # Opening the store encrypts anew what an older key encrypted, and drops the older keys. A crash in between
        # leaves both keys in the file; the next start does the rest.
        SqliteJournal(directory.database, keyring).close()
    print(ROTATED(key=new.id.hex(), path=path))
    print(OLD_BACKUPS())
    return 0


def _facts(keyring: Keyring, path: Path) -> Iterator[tuple[str, str]]:
    yield ENCRYPTED(), f"{', '.join(sorted(keyring.resources))} (AES-256-GCM)"
    yield KEY_FILE(), str(path) if keyring.keys else MADE_LATER(path=path)
    for number, key in enumerate(keyring.keys):
        yield KEY(), (UNTIL_NEXT_START if number else OF)(key=key.id.hex(), created=key.created)
