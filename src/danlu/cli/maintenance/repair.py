"""`danlu repair`: what was found damaged, what can be had back, and taking it back.

danlu repair                                 list the findings
danlu repair show ID                         one finding, with the versions of the object that can be had
danlu repair restore ID [--from FILE] --yes  put the last good version back (or the one of a backup)
danlu repair drop ID --yes                   the finding is dealt with: forget it
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from danlu.cli.command import CommandOptions, argument, flag, option
from danlu.cli.failures import CommandError, UsageError
from danlu.cli.language import Text, translated
from danlu.cli.place import data_directory, stopped
from danlu.cli.valuetypes import PATH, Choice
from danlu.embedded.datadir import DataDirectory
from danlu.embedded.storage import Finding, Quarantine, repair
from danlu.embedded.storage.backup import BackupError
from danlu.embedded.storage.encryption import Keyring, default_key_file
from danlu.embedded.storage.quarantine import OBJECT

SHOWN = 20  # lost writes


NEEDS_ID = Text(
    "repair {what} needs the ID of a finding; `danlu repair` lists them",
    "repair {what} 需要一条损坏记录的编号；`danlu repair` 列出全部",
)
NO_FINDING = Text(
    "there is no finding {id!r}; `danlu repair` lists them", "没有编号为 {id!r} 的损坏记录；`danlu repair` 列出全部"
)
NOTHING = Text("nothing was found damaged", "没有发现损坏")
ONE = Text("{what}: {reason}", "{what}：{reason}")
TELLS_MORE = Text("`danlu repair show ID` tells more about one", "`danlu repair show 编号` 给出一条的详情")
FOUND = Text("found {time}: {reason}", "发现于 {time}：{reason}")
LOST = Text("lost, of {count}:", "丢失（共 {count}）：")
MORE_LOST = Text("  … and {count} more in {file}", "  …另有 {count} 条在 {file} 中")
DAMAGED_VERSION = Text(
    "the damaged version, {size} bytes, begins with {beginning!r}", "损坏的版本有 {size} 字节，开头是 {beginning!r}"
)
NO_VERSION = Text(
    "no earlier version is in the history; `danlu repair restore ID --from BACKUP` takes one from there",
    "历史中没有更早的版本；可用 `danlu repair restore 编号 --from 备份` 从备份中取出",
)
RECOVERABLE = Text(
    "revision {revision} can be had back with `danlu repair restore {id} --yes`:",
    "可用 `danlu repair restore {id} --yes` 恢复修订版 {revision}：",
)
WOULD_FORGET = Text(
    "would forget {id} ({what}) and its content for good; --yes does it",
    "将永久删除 {id}（{what}）及其内容；加 --yes 执行",
)
FORGOT = Text("forgot {id} ({what})", "已删除 {id}（{what}）")
NO_OBJECT = Text(
    "{id} is no object: there is nothing to put back; `danlu repair drop` forgets it",
    "{id} 不是对象，没有可恢复的内容；`danlu repair drop` 删除这条记录",
)
NONE_READABLE = Text("{where} no version of {what} that can be read", "{where}没有可读取的 {what} 的版本")
HISTORY_HAS = Text("the history has", "历史中")
BACKUP_HAS = Text("{backup} has", "{backup} 中")
WOULD_PUT_BACK = Text(
    "would put {what} back as it was at revision {revision}; --yes does it",
    "将把 {what} 恢复为修订版 {revision} 时的样子；加 --yes 执行",
)
CREATED_ANEW = Text("{what} was created anew since; it is left as it is", "{what} 之后又被重新创建；保持现状")
PUT_BACK = Text(
    "{what} is back as it was at revision {revision}; `danlu up` starts with it",
    "{what} 已恢复为修订版 {revision} 时的样子；`danlu up` 会以它启动",
)
WHAT = ("list", "show", "restore", "drop")


@dataclass(frozen=True)
class Options(CommandOptions):
    what: str = argument(
        "list|show|restore|drop",
        type=Choice(WHAT),
        default="list",
        help=Text(
            "list the findings (default), show one, put back what it is about, or forget it",
            "列出损坏记录（默认）、查看一条、恢复其对象，或删除记录",
        ),
    )
    id: str | None = argument(
        "ID",
        default=None,
        help=Text("a finding, as `danlu repair` lists it", "一条损坏记录，编号见 `danlu repair` 的列表"),
    )
    backup: Path | None = option(
        "--from",
        metavar="FILE",
        type=PATH,
        help=Text("restore: the object as it is in this backup", "restore：取这份备份中的对象"),
    )
    yes: bool = flag(
        "--yes",
        help=Text(
            "restore, drop: do it; without this it is only told", "restore、drop：真正执行；不加此项只说明会做什么"
        ),
    )


def run(options: Options) -> int:
    directory = data_directory(options)
    quarantine = Quarantine(directory.quarantine)
    if options.what == "list":
        return _list(quarantine)
    if not options.id:
        raise UsageError(NEEDS_ID(what=options.what))
    finding = quarantine.get(options.id)
    if finding is None:
        raise CommandError(NO_FINDING(id=options.id))
    if options.what == "show":
        return _show(directory, finding)
    if options.what == "drop":
        return _drop(quarantine, finding, options.yes)
    return _restore(directory, quarantine, finding, options.backup, options.yes)


def _list(quarantine: Quarantine) -> int:
    findings = quarantine.findings()
    if not findings:
        print(NOTHING())
        return 0
    width = max(len(one.id) for one in findings)
    for one in findings:
        print(f"{one.id:<{width}}  {one.found}  {ONE(what=one.what, reason=translated(one.reason))}")
    print(f"\n{TELLS_MORE()}")
    return 0


def _show(directory: DataDirectory, finding: Finding) -> int:
    print(f"{finding.what}\n{FOUND(time=finding.found, reason=translated(finding.reason))}")
    if finding.lost:
        print(f"\n{LOST(count=finding.count)}")
        for one in finding.lost[:SHOWN]:
            name = f"{one['namespace']}/{one['name']}" if one["namespace"] else one["name"]
            print(f"  {one['revision']}  {one['change']:<8}  {one['resource']} {name}")
        if len(finding.lost) > SHOWN:
            file = directory.quarantine / (finding.id + ".json")
            print(MORE_LOST(count=len(finding.lost) - SHOWN, file=file))
    if finding.damaged is not None:
        content = finding.damaged.content
        print(f"\n{DAMAGED_VERSION(size=len(content), beginning=content[:60])}")
    if finding.kind == OBJECT:
        found = repair.recoverable(directory.database, finding)
        if found is None:
            print(f"\n{NO_VERSION()}")
        else:
            revision, obj = found
            print(f"\n{RECOVERABLE(revision=revision, id=finding.id)}\n")
            if finding.resource in Keyring(default_key_file(directory.database)).resources:
                obj["data"] = "…"
            print(yaml.safe_dump(obj, sort_keys=False, allow_unicode=True), end="")
    return 0


def _drop(quarantine: Quarantine, finding: Finding, sure: bool) -> int:
    if not sure:
        print(WOULD_FORGET(id=finding.id, what=finding.what))
        return 0
    quarantine.drop(finding.id)
    print(FORGOT(id=finding.id, what=finding.what))
    return 0


def _restore(
    directory: DataDirectory, quarantine: Quarantine, finding: Finding, backup: Path | None, sure: bool
) -> int:
    if finding.kind != OBJECT:
        raise CommandError(NO_OBJECT(id=finding.id))
    found = _from_backup(directory, finding, backup) if backup else repair.recoverable(directory.database, finding)
    if found is None:
        where = BACKUP_HAS(backup=backup) if backup else HISTORY_HAS()
        raise CommandError(NONE_READABLE(where=where, what=finding.what))
    revision, obj = found
    if not sure:
        print(WOULD_PUT_BACK(what=finding.what, revision=revision))
        return 0
    with stopped(directory, "repair restore"):
        try:
            asyncio.run(repair.put_back(directory.database, finding, obj))
        except repair.CreatedAnew as error:
            raise CommandError(CREATED_ANEW(what=finding.what)) from error
        quarantine.drop(finding.id)
    print(PUT_BACK(what=finding.what, revision=revision))
    return 0


def _from_backup(directory: DataDirectory, finding: Finding, path: Path) -> tuple[int, dict[str, Any]] | None:
    try:
        return repair.from_backup(directory.database, finding, path.expanduser())
    except BackupError as error:
        raise CommandError(translated(error)) from error
