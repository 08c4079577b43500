"""`danlu up`: one process with everything in it, in the foreground or detached."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shlex
import socket
import ssl
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from danlu import __version__
from danlu.cli import layout
from danlu.cli.command import CommandOptions, flag, option
from danlu.cli.failures import CommandError, UsageError
from danlu.cli.language import Text, translated
from danlu.cli.local.shares import parse_nodes
from danlu.cli.local.trustwords import refusal
from danlu.cli.main import SHOW_TRACEBACK
from danlu.cli.place import data_directory
from danlu.cli.sharedoptions import LOG_MORE
from danlu.cli.valuetypes import PATH, WHOLE, Choice
from danlu.embedded.settings import AuditSettings, ClusterSettings, IngressSettings, default_home
from danlu.embedded.storage import DataDirectoryError
from danlu.embedded.trust import Unshareable
from danlu.standalone import background, process
from danlu.standalone.process import SYSTEM_NAMESPACES, UMASK, StandaloneSettings, unmet_promises

NO_PORT = Text(
    "{option} {port} is not a port; choose 1 to 65535, or 0 for any free one",
    "{option} {port} 不是端口号；请选择 1 到 65535，或用 0 表示任意空闲端口",
)
NEGATIVE = Text("--fake-gpus must be ≥ 0, not {count}", "--fake-gpus 必须 ≥ 0，而不是 {count}")
NO_POLICY = Text(
    "--audit-log-path needs --audit-policy-file: without a policy nothing is recorded",
    "--audit-log-path 需要同时给出 --audit-policy-file：没有策略就不会记录",
)
LOG_SIZES = Text(
    "--audit-log-maxsize must be at least 1 (MiB) and --audit-log-maxbackup at least 0",
    "--audit-log-maxsize 至少为 1（MiB），--audit-log-maxbackup 至少为 0",
)
TAKEN = Text(
    "port {port} of {host} is taken; choose another with --port (0: any free one)",
    "{host} 的端口 {port} 已被占用；请用 --port 另选一个（0 表示任意空闲端口）",
)
NOT_HERE = Text(
    "--host {host} is no address of this machine; leave it out for 127.0.0.1",
    "--host {host} 不是本机的地址；不写此项则为 127.0.0.1",
)
CERTIFICATES = Text(
    "the certificates in {folder} cannot be used; move them away and new ones are made",
    "{folder} 中的证书无法使用；移走后会重新生成",
)
PRIVILEGED = Text(
    "port {port} may not be used by this account; choose one from 1024 on with --port",
    "此账户不能使用端口 {port}；请用 --port 选择 1024 及以上的端口",
)
NOT_STARTED = Text("it could not start: {problem}", "无法启动：{problem}")
NO_REASON = Text("it did not start; the reason is at the end of {log}", "没有启动成功；原因见 {log} 的末尾")
IS_UP = Text(
    "Danlu {version} is up: a Kubernetes v1.36 at {url}", "Danlu {version} 已启动：Kubernetes v1.36，地址 {url}"
)
PASTE = Text("Paste this to use it:", "粘贴下面这一行即可使用：")
STOPPING = Text(
    "stopping; pods end within their grace periods (Ctrl-C again leaves them running)",
    "正在停止；Pod 会在各自的宽限期内结束（再按一次 Ctrl-C 则让它们继续运行）",
)
FACTS = {
    "data": Text("data", "数据目录"),
    "nodes": Text("nodes", "节点"),
    "console": Text("console", "控制台"),
    "pods": Text("pods", "Pod"),
}


@dataclass(frozen=True)
class Options(CommandOptions):
    port: int | None = option(
        "--port",
        type=WHOLE,
        help=Text("port of the API (default: 6443; 0: any free one)", "API 的端口（默认 6443；0 表示任意空闲端口）"),
    )
    host: str = option(
        "--host",
        default="127.0.0.1",
        help=Text("address of the API (default: 127.0.0.1)", "API 监听的地址（默认 127.0.0.1）"),
    )
    detach: bool = flag(
        "-d", "--detach", help=Text("go to the background; returns when it is ready", "转入后台；就绪后返回")
    )
    nodes: str = option(
        "--nodes",
        metavar="N|SPEC",
        default="1",
        help=Text(
            "virtual nodes: a number (equal shares of this machine), or NAME:cpu=2,memory=4Gi,gpu=1;NAME:…",
            "虚拟节点：一个数字（平分本机资源），或 NAME:cpu=2,memory=4Gi,gpu=1;NAME:…",
        ),
    )
    images: str = option(
        "--images",
        type=Choice(("lenient", "strict")),
        default="lenient",
        help=Text(
            "unknown image names: run them in the default environment and say so, or fail to pull (default: lenient)",
            "遇到未知镜像名：在默认环境中运行并说明，或视为拉取失败（默认 lenient）",
        ),
    )
    fake_gpus: int = option(
        "--fake-gpus",
        metavar="N",
        type=WHOLE,
        default=0,
        help=Text("pretend to have N GPUs, to try out scheduling", "假装有 N 块 GPU，用来试验调度"),
    )
    console_port: int | None = option(
        "--console-port",
        metavar="PORT",
        type=WHOLE,
        help=Text(
            "port of the web console (default: 8080, or any free one if that is taken)",
            "网页控制台的端口（默认 8080，被占用时取任意空闲端口）",
        ),
    )
    ingress_port: int = option(
        "--ingress-port",
        metavar="PORT",
        type=WHOLE,
        default=IngressSettings().http_port,
        help=Text(
            "port on which Ingresses are served, once there is one (default: 8180)",
            "提供 Ingress 的端口，有 Ingress 时才监听（默认 8180）",
        ),
    )
    ingress_tls_port: int = option(
        "--ingress-tls-port",
        metavar="PORT",
        type=WHOLE,
        default=IngressSettings().https_port,
        help=Text("the same for Ingresses with TLS (default: 8543)", "带 TLS 的 Ingress 的端口（默认 8543）"),
    )
    shared: bool = flag(
        "--shared",
        help=Text(
            "for several people who need not trust each other; refuses to start where that cannot be promised",
            "供互不信任的多人使用；无法兑现承诺的地方拒绝启动",
        ),
    )
    audit_policy_file: Path | None = option(
        "--audit-policy-file",
        metavar="FILE",
        type=PATH,
        help=Text(
            "keep an audit log; what it records says this file (audit.k8s.io/v1 Policy)",
            "保留审计日志；记录什么由该文件决定（audit.k8s.io/v1 Policy）",
        ),
    )
    audit_log_path: Path | None = option(
        "--audit-log-path",
        metavar="FILE",
        type=PATH,
        help=Text(
            "the audit log (default: audit.log in the data directory; -: the standard output)",
            "审计日志（默认是数据目录中的 audit.log；- 表示标准输出）",
        ),
    )
    audit_log_maxsize: int = option(
        "--audit-log-maxsize",
        metavar="MIB",
        type=WHOLE,
        default=100,
        help=Text(
            "size at which the audit log is put aside and a new one begun (default: 100)",
            "审计日志达到这个大小时另存并新建（默认 100）",
        ),
    )
    audit_log_maxbackup: int = option(
        "--audit-log-maxbackup",
        metavar="N",
        type=WHOLE,
        default=10,
        help=Text("audit logs put aside that are kept (default: 10)", "保留的旧审计日志数（默认 10）"),
    )
    no_console: bool = flag("--no-console", help=Text("without the web console", "不启动网页控制台"))
    verbose: bool = flag("-v", "--verbose", help=LOG_MORE)
    ready_fd: int | None = option("--ready-fd", type=WHOLE, help=None)


def run(options: Options) -> int:
    settings = _settings(options)
    os.umask(UMASK)
    if settings.shared and options.ready_fd is None and (problems := unmet_promises(settings)):
        raise CommandError(refusal(problems))
    if options.detach and options.ready_fd is None:
        return _detach(options)
    _set_up_logging(options.verbose)
    announcer = _Announcer(options.ready_fd)
    whole = StandaloneSettings(
        settings, not options.no_console, _console_port(options), strict_images=options.images == "strict"
    )
    try:
        return process.run(whole, announcer)
    except (DataDirectoryError, OSError, Unshareable) as error:
        announcer.failed(_explain(error, settings))
        raise CommandError(_explain(error, settings)) from error


def _settings(options: Options) -> ClusterSettings:
    if options.port is not None and not 0 <= options.port <= 65535:
        raise UsageError(NO_PORT(option="--port", port=options.port))
    if options.fake_gpus < 0:
        raise UsageError(NEGATIVE(count=options.fake_gpus))
    try:
        nodes = parse_nodes(options.nodes)
    except ValueError as error:
        raise UsageError(f"--nodes: {error}") from error
    return ClusterSettings(
        data_dir=options.data_dir or default_home(),
        host=options.host,
        port=6443 if options.port is None else options.port,
        nodes=nodes,
        fake_gpus=options.fake_gpus,
        shared=options.shared,
        system_namespaces=SYSTEM_NAMESPACES,
        audit=_audit_settings(options),
        ingress=IngressSettings(http_port=options.ingress_port, https_port=options.ingress_tls_port),
    )


def _audit_settings(options: Options) -> AuditSettings:
    policy: Path | None = options.audit_policy_file
    if policy is None:
        if options.audit_log_path is not None:
            raise UsageError(NO_POLICY())
        return AuditSettings()
    if options.audit_log_maxsize < 1 or options.audit_log_maxbackup < 0:
        raise UsageError(LOG_SIZES())
    from danlu.embedded.apiserver.audit.auditpolicy import AuditPolicyError, read_policy

    try:
        read_policy(policy)
    except AuditPolicyError as error:
        raise UsageError(translated(error)) from error
    log_path: Path | None = options.audit_log_path
    return AuditSettings(policy, log_path, options.audit_log_maxsize, options.audit_log_maxbackup)


def _console_port(options: Options) -> int | None:
    port: int | None = options.console_port
    if port is not None and not 0 <= port <= 65535:
        raise UsageError(NO_PORT(option="--console-port", port=port))
    return port


def _set_up_logging(verbose: bool) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )


def _explain(error: Exception, settings: ClusterSettings) -> str:
    if isinstance(error, Unshareable):
        return refusal(error.problems)
    if not isinstance(error, OSError):
        return translated(error)
    if error.errno == errno.EADDRINUSE:
        return TAKEN(port=settings.port, host=settings.host)
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return NOT_HERE(host=settings.host)
    if isinstance(error, ssl.SSLError):
        return CERTIFICATES(folder=settings.data_dir / "pki")
    if isinstance(error, PermissionError) and error.filename is None:
        return PRIVILEGED(port=settings.port)
    where = f" ({error.filename})" if error.filename else ""
    return NOT_STARTED(problem=f"{error.strerror or error}{where}")


def _banner(url: str, root: Path, facts: dict[str, str]) -> list[str]:
    told = [(f"  {FACTS[name]()}", translated(value)) for name, value in {"data": str(root), **facts}.items()]
    lines = [IS_UP(version=__version__, url=url), *layout.facts(told, left=12)]
    return [*lines, "", PASTE(), "", f"  export KUBECONFIG={shlex.quote(str(root / 'kubeconfig'))}", ""]


class _Announcer:
    """Says what came of the start: to the parent that detached us, or to the terminal."""

    def __init__(self, ready_fd: int | None) -> None:
        self._ready_fd = ready_fd

    def ready(self, url: str, root: Path, facts: dict[str, str]) -> None:
        self._report({"pid": os.getpid(), "lines": _banner(url, root, facts)})

    def failed(self, why: str) -> None:
        self._report({"error": why})

    def stopping(self) -> None:
        if sys.stdout.isatty():
            print(STOPPING(), flush=True)

    def _report(self, outcome: dict[str, Any]) -> None:
        if self._ready_fd is not None:
            background.report(self._ready_fd, outcome)
        elif "lines" in outcome:
            with contextlib.suppress(OSError):  # into a file on a full disk
                print("\n".join(outcome["lines"]), flush=True)


def _detach(options: Options) -> int:
    directory = data_directory(options)
    try:
        directory.prepare()
    except DataDirectoryError as error:
        raise CommandError(translated(error)) from error
    command = [sys.executable, "-m", "danlu", *sys.argv[1:]]
    outcome = background.start(command, directory.log, {SHOW_TRACEBACK: "1"})
    if outcome is None:
        raise CommandError(NO_REASON(log=directory.log))
    if "error" in outcome:
        raise CommandError(str(outcome["error"]))
    print("\n".join(outcome["lines"]))
    return 0
