"""Options and their words that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from danlu.cli.command import CommandOptions, option
from danlu.cli.language import Text
from danlu.cli.valuetypes import PATH

YES = Text("do not ask", "不询问")
FOR_PROGRAMS = Text("for programs", "输出 JSON，供程序读取")
LOG_MORE = Text("log more", "输出更多日志")
GANG = Text("the engine that starts a job's pods together (default: none)", "让作业的 Pod 一起启动的引擎（默认 none）")
LOG_FORMAT = Text("default: text; json: one object a line", "默认 text；json 表示每行一个 JSON 对象")
CONSOLE_URL = Text("where people open the console", "用户打开控制台的地址")
APPS_URL = Text(
    "where they open notebooks; https://*.apps.example.com: each has a host name of its own",
    "打开 Notebook 的地址；https://*.apps.example.com：每个应用有自己的主机名",
)
OIDC_ISSUER = Text("sign-in with this identity provider", "用这个身份提供方登录")
OIDC_CLIENT_ID = Text("as whom the console is known there", "控制台在该处的客户端 ID")
OIDC_CA = Text("authority of its certificate (PEM)", "签发其证书的机构（PEM）")


@dataclass(frozen=True)
class ClusterOptions(CommandOptions):
    """Which cluster."""

    kubeconfig: Path | None = option(
        "--kubeconfig",
        metavar="FILE",
        type=PATH,
        help=Text(
            "default: $KUBECONFIG, the pod's own account, ~/.kube/config",
            "默认：$KUBECONFIG、Pod 自己的账号、~/.kube/config",
        ),
    )
    context: str = option(
        "--context",
        metavar="NAME",
        default="",
        help=Text("of the kubeconfig (default: its current one)", "kubeconfig 中的上下文（默认：其当前上下文）"),
    )
