"""`danlu delete KIND/NAME` or `-f FILE`: deletes objects, and waits until they are gone."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from danlu import errors
from danlu.cli.command import argument, flag, option
from danlu.cli.failures import CommandError, UsageError
from danlu.cli.language import Text, translated
from danlu.cli.objects import manifestoptions
from danlu.cli.objects.completion import OBJECT_WORDS
from danlu.cli.objects.logs import seconds
from danlu.cli.objects.session import ClusterSession, WorkOptions, named, not_there, on_cluster
from danlu.cli.valuetypes import WHOLE
from danlu.meta.kind import Kind
from danlu.resources import applying, printedtable
from danlu.resources.kindfinder import UnknownKind
from danlu.resources.printedtable import Selection

DELETED = Text("{name} deleted", "{name} 已删除")
ALREADY = Text("{name} was not there", "{name} 本来就不存在")
STILL = Text(
    "{name} is still being deleted: finalizers {finalizers}; `danlu describe {name}` tells more",
    "{name} 仍在删除中：finalizer {finalizers}；详见 `danlu describe {name}`",
)
WHAT = Text(
    "name what to delete: KIND/NAME, KIND NAME..., KIND -l LABELS, KIND --all or -f FILE",
    "请指明要删除的对象：类型/名称、类型 名称...、类型 -l 标签、类型 --all 或 -f FILE",
)
EITHER = Text("-f FILE and names exclude each other", "-f FILE 与名称不能同时使用")


@dataclass(frozen=True)
class Options(WorkOptions):
    words: tuple[str, ...] = argument(
        "KIND|KIND/NAME|NAME",
        many=True,
        type=OBJECT_WORDS,
        default=(),
        help=Text("as for `danlu get`", "与 `danlu get` 相同"),
    )
    files: tuple[str, ...] = manifestoptions.files(
        Text("the objects of a file, a folder, or - for standard input", "文件、文件夹或标准输入（-）中的对象")
    )
    recursive: bool = manifestoptions.recursive()
    selector: str = option(
        "-l",
        "--selector",
        metavar="LABELS",
        default="",
        help=Text("those with these labels: app=x", "带有这些标签的对象：app=x"),
    )
    all: bool = flag("--all", help=Text("all of this kind in the namespace", "命名空间中该类型的全部对象"))
    wait: bool = flag(
        "--wait/--no-wait", default=True, help=Text("until they are gone (default)", "等到它们消失（默认）")
    )
    timeout: str = option(
        "--timeout",
        metavar="TIME",
        default="",
        help=Text("the longest wait: 30s, 5m (default: none)", "最长等待：30s、5m（默认不限）"),
    )
    grace: int | None = option(
        "--grace-period", metavar="SECONDS", type=WHOLE, help=Text("that pods get to end", "Pod 结束的宽限期")
    )
    missing_ok: bool = flag("--ignore-not-found", help=Text("what is not there is no error", "对象不存在不算错误"))


Doomed = tuple[Kind, str, str | None]


def run(options: Options) -> int:
    if bool(options.files) == bool(options.words):
        raise UsageError((EITHER if options.files else WHAT)())
    limit = seconds(options.timeout)
    manifests = manifestoptions.read(options.files, options.recursive) if options.files else []

    async def work(session: ClusterSession) -> int:
        doomed: list[Doomed] = []
        for one in reversed(manifests):  # what was made last may hold what was made first
            kind = await _type(session, one.object["apiVersion"], one.object["kind"])
            if kind is not None:
                doomed.append((kind, one.name, manifestoptions.home(kind, one, session.namespace)))
        for named_one in await named(session.kinds, options.words) if options.words else ():
            names = named_one.names or await _matching(session, options, named_one.kind)
            doomed += [(named_one.kind, name, session.home(named_one.kind)) for name in names]
        return await _delete(session, options, doomed, limit)

    return on_cluster(options, work)


async def _type(session: ClusterSession, api_version: str, kind: str) -> Kind | None:
    """None: the definition is gone already, and all its objects with it."""
    try:
        return await session.kinds.of_type(api_version, kind)
    except UnknownKind:
        return None


async def _matching(session: ClusterSession, options: Options, kind: Kind) -> list[str]:
    if not options.selector and not options.all:
        raise UsageError(WHAT())
    found = await printedtable.read(session.client, Selection(kind, session.home(kind), (), options.selector))
    return [row.object["metadata"]["name"] for row in found.rows]


async def _delete(session: ClusterSession, options: Options, doomed: list[Doomed], limit: int) -> int:
    failed, going = 0, []
    for kind, name, namespace in doomed:
        shown = f"{kind.singular_name}.{kind.group}/{name}" if kind.group else f"{kind.singular_name}/{name}"
        try:
            uid = (await session.client.get(kind, name, namespace))["metadata"]["uid"]
            await session.client.delete(kind, name, namespace, grace=options.grace, propagation="Background", uid=uid)
        except errors.NotFound as error:
            if options.missing_ok:
                print(ALREADY(name=shown))
            else:
                failed += 1
                print(f"danlu: {not_there(error, namespace or session.namespace)}", file=sys.stderr)
        except (errors.Forbidden, errors.Conflict, errors.Invalid, errors.BadRequest) as error:
            failed += 1
            print(f"danlu: {shown}: {translated(error.message)}", file=sys.stderr)
        else:
            going.append((kind, name, namespace, uid, shown))
            print(DELETED(name=shown), flush=True)
    for kind, name, namespace, uid, shown in going if options.wait else ():
        if not await applying.until_gone(session.client, kind, name, namespace, uid, limit):
            left = await session.client.get(kind, name, namespace)
            finalizers = ", ".join(left["metadata"].get("finalizers") or ()) or "-"
            raise CommandError(STILL(name=shown, finalizers=finalizers))
    return CommandError.exit_code if failed else 0
