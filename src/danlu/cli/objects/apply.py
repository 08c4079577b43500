"""`danlu apply -f FILE`: makes the objects of manifests, or brings them up to date, by server-side apply."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from danlu import errors
from danlu.cli.command import flag, option
from danlu.cli.failures import CommandError, UsageError
from danlu.cli.language import Text, translated
from danlu.cli.objects import manifestoptions, objecttext, tabletext
from danlu.cli.objects.session import ClusterSession, WorkOptions, on_cluster
from danlu.cli.valuetypes import Choice
from danlu.meta.kind import Object
from danlu.resources import applying
from danlu.resources.applying import ApplyOptions
from danlu.resources.kindfinder import UnknownKind
from danlu.resources.manifestfiles import Manifest

OUTCOMES = {
    "created": Text("{name} created", "{name} 已创建"),
    "configured": Text("{name} configured", "{name} 已更新"),
    "unchanged": Text("{name} unchanged", "{name} 没有变化"),
}
DRY = Text("{line} (dry run: nothing was stored)", "{line}（试运行：没有保存）")
FAILED = Text("{place}: {kind}/{name}: {problem}", "{place}：{kind}/{name}：{problem}")
NO_FILES = Text(
    "name what to apply with -f FILE (- is standard input)", "请用 -f FILE 指明要应用的内容（- 表示标准输入）"
)
NO_KIND = Text(
    "the cluster serves no {kind}; is its CustomResourceDefinition installed (`danlu install`), and apiVersion right?",
    "集群没有 {kind} 这种类型；请检查 apiVersion，以及是否已安装其 CustomResourceDefinition（`danlu install`）",
)
OWNED = Text("{problem}; --force-conflicts takes these fields over", "{problem}；--force-conflicts 可接管这些字段")


@dataclass(frozen=True)
class Options(WorkOptions):
    files: tuple[str, ...] = manifestoptions.files(
        Text(
            "file, folder, or - for standard input; several documents in one are fine",
            "文件、文件夹，- 表示标准输入；一个文件中可有多个文档",
        )
    )
    recursive: bool = manifestoptions.recursive()
    dry_run: str = option(
        "--dry-run",
        type=Choice(("none", "server")),
        default="none",
        help=Text("server: check everything and store nothing", "server：全部校验，但不保存"),
    )
    force: bool = flag("--force-conflicts", help=Text("take over fields that others own", "接管属于他人的字段"))
    manager: str = option(
        "--field-manager",
        metavar="NAME",
        default=applying.FIELD_MANAGER,
        help=Text("as whom fields are owned (default: kubectl)", "字段归属的名称（默认 kubectl）"),
    )
    output: str = option(
        "-o",
        "--output",
        type=Choice(("yaml", "json", "name")),
        default="",
        help=Text("default: a line each", "默认：每个对象一行"),
    )


def run(options: Options) -> int:
    if not options.files:
        raise UsageError(NO_FILES())
    manifests = manifestoptions.read(options.files, options.recursive)
    return on_cluster(options, lambda session: _work(session, options, manifests))


async def _work(session: ClusterSession, options: Options, manifests: list[Manifest]) -> int:
    """Each on its own: one that is refused does not keep the others, as with kubectl."""
    failed, done = 0, []
    for place in applying.in_order([one.object["kind"] for one in manifests]):
        try:
            done.append(await _apply(session, options, manifests[place]))
        except (errors.ServiceUnavailable, errors.Timeout, errors.Unauthorized):
            raise
        except (errors.ApiError, UnknownKind) as error:
            failed += 1
            print(f"danlu: {_told(manifests[place], error)}", file=sys.stderr)
    if options.output in ("yaml", "json") and done:
        print(objecttext.dumped(done[0] if len(done) == 1 else objecttext.as_list(done), options.output))
    return CommandError.exit_code if failed else 0


async def _apply(session: ClusterSession, options: Options, manifest: Manifest) -> Object:
    kind = await session.kinds.of_type(manifest.object["apiVersion"], manifest.object["kind"])
    dry = options.dry_run == "server"
    how = ApplyOptions(options.manager, options.force, dry)
    namespace = manifestoptions.home(kind, manifest, session.namespace)
    applied = await applying.apply(session.client, kind, manifest.object, namespace, how)
    name = tabletext.object_name(kind.group, kind.singular_name, applied.object)
    if options.output in ("", "name"):
        line = name if options.output else OUTCOMES[applied.outcome](name=name)
        print(DRY(line=line) if dry and not options.output else line, flush=True)
    return applied.object


def _told(manifest: Manifest, error: errors.ApiError | UnknownKind) -> str:
    if isinstance(error, UnknownKind):
        problem = NO_KIND(kind=error.word)
    elif isinstance(error, errors.Conflict):
        problem = OWNED(problem=translated(error.message))
    else:
        problem = translated(error.message)
    facts = {"kind": manifest.object["kind"], "name": manifest.name}
    return FAILED(place=manifest.place, problem=problem, **facts)
