"""`danlu uninstall`: takes Danlu from a cluster and leaves what users made, unless that is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from danlu.cli import clusterclient
from danlu.cli.command import flag, option
from danlu.cli.failures import CommandError
from danlu.cli.language import Text, translated
from danlu.cli.sharedoptions import YES, ClusterOptions
from danlu.client.client import Client
from danlu.operator.install import planexecution, removal
from danlu.operator.install.options import NAMESPACE
from danlu.operator.install.removal import Removal

BY_HELM = Text(
    "Danlu was installed here by Helm; take it away with: helm uninstall {release} -n {namespace}",
    "丹炉是用 Helm 安装的；请这样卸载：helm uninstall {release} -n {namespace}",
)
NOT_INSTALLED = Text("Danlu is not installed on {server}: nothing to take away", "{server} 上没有安装丹炉：无需卸载")
IS_DELETED = Text("On {server} this is deleted:", "将从 {server} 删除：")
DEFINITION = Text(
    "  - CustomResourceDefinition {name}, and with it {count} {kind} objects",
    "  - CustomResourceDefinition {name}，连同 {count} 个 {kind} 对象",
)
DRY = Text("nothing was changed (--dry-run)", "未做任何改动（--dry-run）")
NOTHING = Text("nothing was changed", "未做任何改动")
QUESTION = Text("Delete this?", "删除这些内容？")
QUESTION_DATA = Text("Delete this, with all jobs and notebooks?", "删除这些内容，以及所有作业和 Notebook？")
KEPT = Text(
    "kept: {count} definitions of kinds with {objects}, the roles danlu-view and danlu-edit, pods that run, volumes "
    "and their claims; `danlu install` takes them up again, --delete-data deletes the definitions and their objects",
    "保留：{count} 个类型的定义（{objects}）、角色 danlu-view 和 danlu-edit、运行中的 Pod、存储卷及其声明；"
    "`danlu install` 会重新接管它们，--delete-data 则删除类型的定义及其对象",
)
NO_OBJECTS = Text("no objects of theirs", "没有对象")
KEPT_VOLUMES = Text(
    "kept: volumes and their claims; they are yours: kubectl get pvc -A",
    "保留：存储卷及其声明，它们属于用户：kubectl get pvc -A",
)
KEPT_NAMESPACE = Text(
    "kept: namespace {name}, because of what others have in it: {first}",
    "保留：命名空间 {name}，因为其中有他人的内容：{first}",
)


@dataclass(frozen=True)
class Options(ClusterOptions):
    namespace: str | None = option(
        "-n", "--namespace", metavar="NAME", help=Text("default: where Danlu is found", "默认：丹炉所在的命名空间")
    )
    delete_data: bool = flag(
        "--delete-data",
        help=Text(
            "also the kinds' definitions, and with them every job and notebook",
            "同时删除类型的定义，以及所有作业和 Notebook",
        ),
    )
    dry_run: bool = flag("--dry-run", help=Text("say what would be deleted and kept", "说明将删除和保留什么"))
    yes: bool = flag("-y", "--yes", help=YES)


def run(options: Options) -> int:
    async def work(client: Client, server: str) -> int:
        return await _uninstall(client, server, options)

    return clusterclient.on_cluster(options, work)


async def _uninstall(client: Client, server: str, options: Options) -> int:
    known = await planexecution.remembered(client)
    namespace = options.namespace or (known[0].namespace if known else NAMESPACE)
    found = await removal.look(client, namespace)
    if found.helm_release:
        raise CommandError(BY_HELM(release=found.helm_release, namespace=namespace))
    if not found.objects and not (options.delete_data and found.definitions):
        print(NOT_INSTALLED(server=server))
        _tell_kept(found, delete_data=False)
        return 0
    print(IS_DELETED(server=server))
    for one in found.objects:
        place = f"{one['metadata']['namespace']}/" if one["metadata"].get("namespace") else ""
        print(f"  - {one['kind']} {place}{one['metadata']['name']}")
    if options.delete_data:
        for one in found.definitions:
            kind = one["spec"]["names"]["kind"]
            count = found.counts.get(kind, 0)
            print(DEFINITION(name=one["metadata"]["name"], count=count, kind=kind))
    if found.namespace is not None and not found.others:
        print(f"  - Namespace {found.namespace['metadata']['name']}")
    _tell_kept(found, delete_data=options.delete_data)
    if options.dry_run:
        print(DRY())
        return 0
    question = (QUESTION_DATA if options.delete_data else QUESTION)()
    if not clusterclient.agreed(question, options.yes):
        print(NOTHING())
        return 1
    await removal.take_away(client, found, data=options.delete_data, tell=lambda line: print(translated(line)))
    return 0


def _tell_kept(found: Removal, *, delete_data: bool) -> None:
    if found.definitions and not delete_data:
        counted = ", ".join(f"{count} {kind}" for kind, count in found.counts.items()) or NO_OBJECTS()
        print(KEPT(count=len(found.definitions), objects=counted))
    if delete_data:
        print(KEPT_VOLUMES())
    if found.namespace is not None and found.others:
        name, first = found.namespace["metadata"]["name"], ", ".join(found.others[:3])
        print(KEPT_NAMESPACE(name=name, first=first))
