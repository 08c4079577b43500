"""`danlu operator`: the platform's kinds on any Kubernetes, from a kubeconfig or inside a pod."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass

from danlu.cli.command import flag, option
from danlu.cli.failures import CommandError, UsageError
from danlu.cli.language import Text, translated
from danlu.cli.sharedoptions import CONSOLE_URL, GANG, LOG_FORMAT, LOG_MORE, ClusterOptions
from danlu.cli.valuetypes import NUMBER, WHOLE, Choice
from danlu.client import config
from danlu.kinds import registry
from danlu.kinds.platform import PlatformKind, PlatformSettings
from danlu.operator import logs
from danlu.operator.run import Operator, OperatorSettings

CANNOT_LISTEN = Text("--listen {host}:{port}: {problem}", "--listen {host}:{port}：{problem}")
NAME_ONE = Text("{problem}; name one with --kubeconfig", "{problem}；请用 --kubeconfig 指定")
TOO_SHORT = Text("--lease-duration is at least 2 seconds", "--lease-duration 至少为 2 秒")
NO_ADDRESS = Text("--listen {text} is not HOST:PORT", "--listen {text} 不是 HOST:PORT 的形式")
NOTHING_LEFT = Text(
    "--kinds and --without-kinds leave nothing to look after", "--kinds 和 --without-kinds 没有留下任何要管理的类型"
)
NO_KIND = Text("there is no kind {kind!r}; there are {known}", "没有类型 {kind!r}；有 {known}")
GANGS = ("none", "kube", "volcano", "coscheduling", "kueue")


@dataclass(frozen=True)
class Options(ClusterOptions):
    namespace: tuple[str, ...] = option(
        "-n",
        "--namespace",
        metavar="NAME",
        multiple=True,
        help=Text("watch only this one; may be repeated", "只关注这个命名空间；可重复"),
    )
    kinds: str = option(
        "--kinds",
        metavar="A,B",
        default="",
        help=Text(
            "only these, such as PyTorchJob,TFJob (default: all)", "只管理这些，例如 PyTorchJob,TFJob（默认：全部）"
        ),
    )
    without_kinds: str = option(
        "--without-kinds",
        metavar="A,B",
        default="",
        help=Text(
            "all but these, where another operator has them", "除这些以外的全部；用于它们由其他 Operator 管理的情形"
        ),
    )
    gang: str = option("--gang", type=Choice(GANGS), default="none", help=GANG)
    console_url: str = option("--console-url", metavar="URL", default="", help=CONSOLE_URL)
    qps: float = option(
        "--qps",
        metavar="N",
        type=NUMBER,
        default=1000.0,
        help=Text("requests a second at most (default: 1000; 0: any)", "每秒最多的请求数（默认 1000；0 表示不限）"),
    )
    burst: int = option(
        "--burst",
        metavar="N",
        type=WHOLE,
        default=2000,
        help=Text("and at once (default: 2000)", "瞬时最多的请求数（默认 2000）"),
    )
    no_leader_election: bool = flag(
        "--no-leader-election",
        help=Text("work at once; only when nobody else does", "立即工作；仅在没有其他副本时使用"),
    )
    lease_namespace: str = option(
        "--lease-namespace",
        metavar="NAME",
        default="",
        help=Text("of the lease by which one replica leads", "选举所用 Lease 的命名空间"),
    )
    lease_duration: float = option(
        "--lease-duration",
        metavar="S",
        type=NUMBER,
        default=8.0,
        help=Text("seconds until a dead leader is replaced", "主副本失效后多少秒由他人接替"),
    )
    listen: str = option(
        "--listen",
        metavar="HOST:PORT",
        default="",
        help=Text(
            "health and metrics (default: 0.0.0.0:8080 in a pod, else any free port of 127.0.0.1)",
            "健康检查与指标的地址（在 Pod 中默认 0.0.0.0:8080，否则为 127.0.0.1 的任意空闲端口）",
        ),
    )
    log_format: str = option("--log-format", type=Choice(logs.FORMATS), default="text", help=LOG_FORMAT)
    verbose: bool = flag("-v", "--verbose", help=LOG_MORE)


def run(options: Options) -> int:
    settings = _settings(options)
    logs.set_up(options.log_format, verbose=options.verbose)
    import uvloop

    try:
        uvloop.run(_serve(settings))
    except OSError as error:
        raise CommandError(
            CANNOT_LISTEN(host=settings.host, port=settings.port, problem=error.strerror or error)
        ) from error
    return 0


async def _serve(settings: OperatorSettings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await Operator(settings).run(stop)


def _settings(options: Options) -> OperatorSettings:
    try:
        found = config.load(options.kubeconfig, options.context)
    except config.ClientConfigError as error:
        raise CommandError(NAME_ONE(problem=translated(error))) from error
    if options.lease_duration < 2:
        raise UsageError(TOO_SHORT())
    host, port = _address(options.listen)
    return OperatorSettings(
        config=found,
        platform=PlatformSettings(gang=options.gang, console_url=options.console_url.rstrip("/")),
        kinds=_kinds(options),
        namespaces=tuple(dict.fromkeys(options.namespace)),
        qps=options.qps,
        burst=options.burst,
        elect=not options.no_leader_election,
        lease_namespace=options.lease_namespace,
        lease_duration_s=options.lease_duration,
        host=host,
        port=port,
    )


def _address(text: str) -> tuple[str, int]:
    if not text:
        return ("0.0.0.0", 8080) if os.environ.get("KUBERNETES_SERVICE_HOST") else ("127.0.0.1", 0)
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise UsageError(NO_ADDRESS(text=text))
    return host.strip("[]") or "0.0.0.0", int(port)


def _kinds(options: Options) -> tuple[PlatformKind, ...]:
    only, without = _named(options.kinds), _named(options.without_kinds)
    chosen = [kind for kind in registry.REGISTRY if (not only or word(kind) in only) and word(kind) not in without]
    if options.namespace:
        chosen = [kind for kind in chosen if not kind.cluster_wide]
    if not chosen:
        raise UsageError(NOTHING_LEFT())
    return tuple(chosen)


def _named(text: str) -> set[str]:
    known = {word(kind).lower(): word(kind) for kind in registry.REGISTRY}
    asked = [part.strip() for part in text.split(",") if part.strip()]
    for part in asked:
        if part.lower() not in known:
            raise UsageError(NO_KIND(kind=part, known=", ".join(known.values())))
    return {known[part.lower()] for part in asked}


def word(kind: PlatformKind) -> str:
    return kind.kind.kind
