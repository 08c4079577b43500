"""`danlu top [nodes|pods]`: what is used of processors and memory, the most first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from danlu import errors
from danlu.cli.command import argument
from danlu.cli.failures import CommandError
from danlu.cli.language import Text
from danlu.cli.objects import tabletext
from danlu.cli.objects.cp import shown_size
from danlu.cli.objects.session import ClusterSession, ListOptions, on_cluster
from danlu.cli.valuetypes import Choice
from danlu.meta import quantity
from danlu.meta.kind import Object
from danlu.meta.wellknown import NODE, NODE_METRICS, POD_METRICS

NO_METRICS = Text(
    "this cluster measures nothing: it has no metrics.k8s.io (install metrics-server)",
    "这个集群没有用量数据：缺少 metrics.k8s.io（请安装 metrics-server）",
)
NONE = Text("nothing is measured yet; pods need a few seconds", "还没有用量数据；Pod 启动后需要几秒")
HEADS = {
    "name": Text("NAME", "名称"),
    "namespace": Text("NAMESPACE", "命名空间"),
    "cpu": Text("CPU (cores)", "CPU（核）"),
    "memory": Text("MEMORY", "内存"),
}


@dataclass(frozen=True)
class Options(ListOptions):
    what: str = argument(
        "pods|nodes", type=Choice(("pods", "nodes")), default="pods", help=Text("default: pods", "默认：pods")
    )


def run(options: Options) -> int:
    return on_cluster(options, lambda session: _work(session, options))


async def _work(session: ClusterSession, options: Options) -> int:
    try:
        rows = await (_nodes(session) if options.what == "nodes" else _pods(session, options))
    except (errors.NotFound, errors.ServiceUnavailable) as error:
        if isinstance(error, errors.ServiceUnavailable) and "metrics" not in str(error.details):
            raise
        raise CommandError(NO_METRICS()) from error
    everywhere = options.what == "pods" and options.all_namespaces
    head = [HEADS[one]() for one in ((["namespace"] if everywhere else []) + ["name", "cpu", "memory"])]
    print("\n".join(tabletext.lines(head, rows)) if rows else NONE())
    return 0


async def _nodes(session: ClusterSession) -> list[list[str]]:
    room = {node["metadata"]["name"]: node["status"]["allocatable"] for node in (await session.client.list(NODE)).items}
    rows = []
    for one in (await session.client.list(NODE_METRICS)).items:
        name = one["metadata"]["name"]
        cpu, memory = _used([one["usage"]])
        of = room.get(name, {})
        rows.append((cpu, [name, _with_share(f"{cpu:.2f}", cpu, of, "cpu"),
                           _with_share(shown_size(memory), memory, of, "memory")]))  # fmt: skip
    return [row for _, row in sorted(rows, reverse=True)]


async def _pods(session: ClusterSession, options: Options) -> list[list[str]]:
    home = None if options.all_namespaces else session.namespace
    rows = []
    for one in (await session.client.list(POD_METRICS, home, labels=options.selector)).items:
        cpu, memory = _used(container["usage"] for container in one.get("containers") or ())
        before = [one["metadata"]["namespace"]] if options.all_namespaces else []
        rows.append((cpu, [*before, one["metadata"]["name"], f"{cpu:.2f}", shown_size(memory)]))
    return [row for _, row in sorted(rows, reverse=True)]


def _used(usages: Iterator[Object] | list[Object]) -> tuple[float, float]:
    every = list(usages)
    cpu, memory = (sum(float(quantity.parse(one.get(name, "0"))) for one in every) for name in ("cpu", "memory"))
    return cpu, memory


def _with_share(text: str, used: float, room: Object, name: str) -> str:
    total = float(quantity.parse(room.get(name, "0")))
    return f"{text} ({used / total:.0%})" if total else text
