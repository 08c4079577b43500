"""The words for what `danlu up --shared` promises, and for what keeps it from promising that; English and Chinese."""

from __future__ import annotations

from collections.abc import Sequence

from danlu.cli.language import Text, translated
from danlu.embedded.trust import Unmet

# code -> what is not kept, what to do
UNMET: dict[str, tuple[Text, Text]] = {
    "no-namespaces": (
        Text(
            "containers have no file tree of their own ({reason}), so everybody's pods see everybody's files",
            "容器没有自己的文件树（{reason}），任何人的 Pod 都能看到所有人的文件",
        ),
        Text(
            "use a Linux that allows namespaces to root, unset DANLU_SANDBOX, or install on a cluster "
            "(`danlu install`)",
            "请使用允许 root 创建命名空间的 Linux，取消 DANLU_SANDBOX，或安装到集群（`danlu install`）",
        ),
    ),
    "one-account": (
        Text(
            "all pods would run as one account (uid {account}), the server's own: one pod could stop or read any "
            "other, and the server",
            "所有 Pod 都会以服务器自己的账号（uid {account}）运行：一个 Pod 可以停止或读取其他任何 Pod，乃至服务器本身",
        ),
        Text(
            "start it as root (`sudo danlu up --shared`): then each project's pods have a user of their own; or "
            "install on a cluster (`danlu install`)",
            "请以 root 启动（`sudo danlu up --shared`），这样每个项目的 Pod 各有自己的用户；"
            "或安装到集群（`danlu install`）",
        ),
    ),
    "ports-shared": (
        Text(
            "a pod could listen on the address of another's service ({reason})",
            "一个 Pod 可以在他人服务的地址上监听（{reason}）",
        ),
        Text(
            "use Linux 5.9 or newer on x86-64 or arm64, with seccomp allowed",
            "请使用允许 seccomp 的 Linux 5.9 或更新版本（x86-64 或 arm64）",
        ),
    ),
    "old-kernel": (
        Text(
            "Linux {release} shows every pod the command lines of all others",
            "Linux {release} 会让每个 Pod 看到其他所有 Pod 的命令行",
        ),
        Text("use Linux 5.8 or newer", "请使用 Linux 5.8 或更新的版本"),
    ),
    "processes-visible": (
        Text(
            "a /proc that hides the processes of others could not be mounted: {problem}",
            "无法挂载会隐藏他人进程的 /proc：{problem}",
        ),
        Text(
            "start it where root may mount proc: not in a container without that right",
            "请在 root 可以挂载 proc 的地方启动，而不是在没有此权限的容器里",
        ),
    ),
    "pods-from-before": (
        Text(
            "{count} pods were made while one person had this instance, and run as the server's account: {pods}",
            "有 {count} 个 Pod 是在单人使用时创建的，以服务器的账号运行：{pods}",
        ),
        Text(
            "start it without --shared, delete them, then start it with --shared",
            "请先不带 --shared 启动并删除它们，再用 --shared 启动",
        ),
    ),
    "no-permissions": (
        Text(
            "the file system of {path} does not keep other accounts out: {problem}",
            "{path} 所在的文件系统挡不住其他账号：{problem}",
        ),
        Text(
            "choose a folder on a local Linux file system with --data-dir or DANLU_HOME",
            "请用 --data-dir 或 DANLU_HOME 选择一个位于本地 Linux 文件系统上的目录",
        ),
    ),
}
CANNOT = Text(
    "--shared cannot keep what it promises several people here, so nothing was started:",
    "在这里 --shared 无法兑现对多名使用者的承诺，因此没有启动：",
)
TO_DO = Text("to do:", "→")
FOR_ONE = Text(
    "for one person (whoever may run pods here is trusted; `danlu up --shared` is for several)",
    "供一人使用（能在此运行 Pod 的人都受信任；多人使用请用 `danlu up --shared`）",
)
FOR_SEVERAL = Text(
    "for several people (--shared: a user for each project's pods, baseline pod security, nobody anonymous)",
    "供多人使用（--shared：每个项目的 Pod 各有用户，Pod 安全级别为 baseline，不接受匿名请求）",
)


def refusal(problems: Sequence[Unmet]) -> str:
    """One line for each promise that cannot be kept, with its remedy."""
    lines = [CANNOT()]
    for code, parameters in problems:
        what, remedy = UNMET[code]
        known = {name: translated(value) for name, value in parameters.items()}
        lines.append(f"  - {what(**known)}\n    {TO_DO()} {remedy(**known)}")
    return "\n".join(lines)


def model(shared: bool) -> str:
    return (FOR_SEVERAL if shared else FOR_ONE)()
