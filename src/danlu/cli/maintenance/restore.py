"""`danlu restore FILE`: verifies a backup, then puts it in place of what is there, which is kept aside."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from danlu.cli.command import CommandOptions, argument, flag
from danlu.cli.failures import CommandError
from danlu.cli.language import Count, Text, translated
from danlu.cli.place import data_directory, stopped
from danlu.cli.valuetypes import PATH
from danlu.embedded.storage.backup import BackupError, read, restore

WHOLE = Text(
    "{file} is whole: {count:object|objects} at revision {revision}", "{file} 完好：修订版 {revision} 的 {count} 个对象"
)
THERE_ALREADY = Text(
    "there is a store in {root} already; --force replaces it and keeps it aside, --data-dir chooses another place",
    "{root} 中已有存储；--force 会替换它并把原有的另存，--data-dir 可另选位置",
)
BACK = Text(
    "{count:object|objects} of revision {revision} are back in {root}; revisions go on at {next}",
    "修订版 {revision} 的 {count} 个对象已恢复到 {root}；后续修订版从 {next} 开始",
)
ASIDE = Text("what was there is in {folder}", "原有的内容在 {folder}")
START = Text("`danlu up` starts it", "用 `danlu up` 启动")


@dataclass(frozen=True)
class Options(CommandOptions):
    file: Path = argument("FILE", type=PATH, help=Text("what `danlu backup` wrote", "由 `danlu backup` 写出的文件"))
    force: bool = flag(
        "--force",
        help=Text(
            "although objects are there: they are kept under quarantine/ and replaced",
            "即使已有对象也恢复：原有的移到 quarantine/ 下保留",
        ),
    )
    check: bool = flag("--check", help=Text("only verify the file", "只校验文件"))


def run(options: Options) -> int:
    directory = data_directory(options)
    try:
        backup = read(options.file.expanduser())
        count = Count(len(backup.current()))
        if options.check:
            print(WHOLE(file=options.file, count=count, revision=backup.revision))
            return 0
        with stopped(directory, "restore"):
            if directory.database.exists() and not options.force:
                raise CommandError(THERE_ALREADY(root=directory.root))
            aside = directory.quarantine / f"before-restore-{time.strftime('%Y%m%d-%H%M%S')}"
            revision = restore(backup, directory.database, aside)
    except BackupError as error:
        raise CommandError(translated(error)) from error
    print(BACK(count=count, revision=backup.revision, root=directory.root, next=revision))
    if aside.exists():
        print(ASIDE(folder=aside))
    print(START())
    return 0
