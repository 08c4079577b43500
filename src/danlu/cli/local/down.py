"""`danlu down`: stops the server and the pods' processes; with --keep-pods the pods go on and are adopted later."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass

from danlu.cli.command import CommandOptions, flag
from danlu.cli.failures import CommandError
from danlu.cli.language import Count, Text
from danlu.cli.place import data_directory
from danlu.embedded.datadir import DataDirectory
from danlu.embedded.node.sandbox.procfs import start_time

STARTING = Text("danlu on {root} is just starting; try again in a moment", "{root} 上的 danlu 正在启动；请稍后再试")
NOT_YOURS = Text(
    "pid {pid} belongs to another account; only that one can stop it", "进程 {pid} 属于另一个账户；只有该账户能停止它"
)
STOPPED = Text(
    "stopped (was pid {pid}); all objects and volumes stay in {root}",
    "已停止（原进程 {pid}）；全部对象和存储卷保留在 {root}",
)
STOPPED_WITHOUT_PODS = Text(
    "stopped (was pid {pid}); its pods go on in {root}", "已停止（原进程 {pid}）；其 Pod 继续在 {root} 中运行"
)
STUCK = Text(
    "pid {pid} has not stopped after {seconds} s; `kill -9 {pid}` loses no data",
    "进程 {pid} 在 {seconds} 秒后仍未停止；`kill -9 {pid}` 不会丢失数据",
)
WAITING = Text("waiting for pods to end, each within its grace period", "正在等待 Pod 结束，各自不超过其宽限期")
LEFTOVERS = Text(
    "danlu did not run on {root}; stopped {count:container|containers} that it had left behind",
    "{root} 上没有运行 danlu；已停止它遗留的 {count} 个容器",
)
NOTHING = Text("danlu does not run on {root}; nothing to stop", "{root} 上没有运行 danlu；无需停止")

SAY_AFTER_S = 2.0
STOP_SECONDS = 90


@dataclass(frozen=True)
class Options(CommandOptions):
    keep_pods: bool = flag(
        "--keep-pods",
        help=Text(
            "leave the pods running; the next `danlu up` takes them up again",
            "让 Pod 继续运行；下一次 `danlu up` 会接管它们",
        ),
    )


def run(options: Options) -> int:
    directory = data_directory(options)
    holder = directory.holder()
    if holder is None:
        return _stop_leftovers(directory, options.keep_pods)
    if not holder.pid:
        raise CommandError(STARTING(root=directory.root))
    try:
        os.kill(holder.pid, signal.SIGHUP if options.keep_pods else signal.SIGTERM)
    except ProcessLookupError:
        pass  # it ended by itself since we looked
    except PermissionError as error:
        raise CommandError(NOT_YOURS(pid=holder.pid)) from error
    _wait(directory, holder.pid)
    said = STOPPED_WITHOUT_PODS if options.keep_pods else STOPPED
    print(said(pid=holder.pid, root=directory.root))
    return 0


def _wait(directory: DataDirectory, pid: int) -> None:
    begun = time.monotonic()
    said = False
    # The directory is free a moment before the process is gone.
    while ((now := directory.holder()) is not None and now.pid in (pid, 0)) or start_time(pid):
        passed = time.monotonic() - begun
        if passed > STOP_SECONDS:
            raise CommandError(STUCK(pid=pid, seconds=STOP_SECONDS))
        if passed > SAY_AFTER_S and not said:
            said = True
            print(WAITING(), file=sys.stderr)
        time.sleep(0.02)


def _stop_leftovers(directory: DataDirectory, keep_pods: bool) -> int:
    from danlu.embedded.node.pods.adoption import stop_leftovers

    stopped = 0 if keep_pods else stop_leftovers(directory.root)
    if stopped:
        print(LEFTOVERS(root=directory.root, count=Count(stopped)))
    else:
        print(NOTHING(root=directory.root))
    return 0
