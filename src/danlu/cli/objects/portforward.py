"""`danlu port-forward KIND/NAME LOCAL:REMOTE`: a port of this machine that leads into a pod, until Ctrl-C."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass

from danlu.cli.command import argument, option
from danlu.cli.failures import CommandError, UsageError
from danlu.cli.language import Text, translated
from danlu.cli.objects.completion import POD_WORDS
from danlu.cli.objects.exec import place_of
from danlu.cli.objects.session import ClusterSession, WorkOptions, on_cluster, one_named
from danlu.client.http import HttpTransport
from danlu.resources import portforwarder
from danlu.resources.portforwarder import PortPair

NO_PORT = Text(
    "{text!r} is no port: write 8080, 8080:80, :80 or 8080:http",
    "{text!r} 不是端口：请写 8080、8080:80、:80 或 8080:http",
)
NOT_SERVED = Text("{about} has no port {port}", "{about} 没有端口 {port}")
TAKEN = Text(
    "port {port} of this machine cannot be used: {problem}; :{remote} takes any that is free",
    "无法使用本机端口 {port}：{problem}；:{remote} 会使用任意空闲端口",
)
FORWARDS = Text(
    "http://{address}:{local} leads to {pod}:{remote}; Ctrl-C ends it",
    "http://{address}:{local} 通往 {pod}:{remote}；Ctrl-C 结束",
)
BROKE = Text("a connection failed: {problem}", "有一个连接失败：{problem}")


@dataclass(frozen=True)
class Options(WorkOptions):
    target: str = argument(
        "POD|KIND/NAME", type=POD_WORDS, help=Text("pod, service, deployment, job", "Pod、服务、部署、作业")
    )
    ports: tuple[str, ...] = argument(
        "PORT",
        many=True,
        help=Text("8080, 8080:80 (here:there), :80 (any here)", "8080、8080:80（本机:对方）、:80（本机任意）"),
    )
    address: str = option(
        "--address", metavar="IP", default="127.0.0.1", help=Text("where to listen here", "本机监听的地址")
    )


def run(options: Options) -> int:
    split = [_split(text) for text in options.ports]
    return on_cluster(options, lambda session: _work(session, options, split))


def _split(text: str) -> tuple[int, str]:
    local, colon, remote = text.rpartition(":")
    remote = remote or local
    local = local if colon else remote
    if not remote or (local and not (local.isdigit() and int(local) < 65536)):
        raise UsageError(NO_PORT(text=text))
    return int(local or 0), remote


async def _work(session: ClusterSession, options: Options, split: list[tuple[int, str]]) -> int:
    transport = session.client.transport
    assert isinstance(transport, HttpTransport)
    kind, name = await one_named(session.kinds, (options.target,), "pods")
    place = await place_of(session, options.target)
    obj = await portforwarder.service_or_none(session.client, kind, name, session.home(kind))
    pod = await session.client.get((await session.kinds.called("pods"))[0], place.pod, place.namespace)
    servers = []
    for local, text in split:
        remote = portforwarder.remote_port(kind, obj, pod, text)
        if remote is None or not 0 < remote < 65536:
            raise CommandError(NOT_SERVED(about=options.target, port=text))
        try:
            server = await portforwarder.listen(transport, place, PortPair(local, remote), options.address, _broke)
        except OSError as error:
            raise CommandError(TAKEN(port=local, problem=error.strerror or error, remote=text)) from error
        servers.append(server)
        bound = server.sockets[0].getsockname()[1]
        print(FORWARDS(address=options.address, local=bound, pod=place.pod, remote=remote), flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))
    return 0


def _broke(problem: str) -> None:
    print(f"danlu: {BROKE(problem=translated(problem))}", file=sys.stderr)
