"""`danlu console`: the web console of any Kubernetes, on this machine or as a Deployment in the cluster.

`danlu up` has one of its own (`standalone/embeddedconsole.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import secrets
import signal
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from danlu.cli.command import option
from danlu.cli.failures import CommandError, UsageError
from danlu.cli.language import Text, translated
from danlu.cli.optionfiles import read
from danlu.cli.sharedoptions import APPS_URL, LOG_FORMAT, OIDC_CA, OIDC_CLIENT_ID, OIDC_ISSUER, ClusterOptions
from danlu.cli.valuetypes import NUMBER, PATH, WHOLE, Choice
from danlu.client import config
from danlu.console.apptransport import Directly, Reach, ThroughApi
from danlu.console.consoleserver import ConsoleServer
from danlu.console.kubeapi import OverHttp
from danlu.console.oidcfiles import FILES, TOKENS, OidcOptionError, OidcOptions
from danlu.console.settings import HOUR, SCOPES, ConsoleSettings, OidcSettings
from danlu.net.listener import bind
from danlu.operator import logs

log = logging.getLogger(__name__)

NAME_ONE = Text("{problem}; name a cluster with --kubeconfig FILE", "{problem}；请用 --kubeconfig FILE 指定集群")
CANNOT_LISTEN = Text(
    "{host}, port {port} or {apps_port}: {problem}; choose others with --port and --apps-port",
    "{host} 的端口 {port} 或 {apps_port}：{problem}；请用 --port 和 --apps-port 另选",
)
SERVING = Text(
    "The console of {server} is at {url} (notebooks: {apps_url})", "{server} 的控制台在 {url}（Notebook：{apps_url}）"
)
SIGN_IN = Text("sign-in with {issuer}", "用 {issuer} 登录")
NO_SIGN_IN = Text("no sign-in with an identity provider", "不使用身份提供方登录")
SAME_ORIGIN = Text(
    "--url and --apps-url are the same; notebooks must not be of the console's own origin",
    "--url 和 --apps-url 相同；Notebook 不能与控制台同源",
)
TOO_SHORT_SIGN_IN = Text("--session-hours must be > 0, not {hours:g}", "--session-hours 必须 > 0，而不是 {hours:g}")
NO_ORIGIN = Text(
    "{option} {url} is no origin; write for instance https://danlu.example.com",
    "{option} {url} 不是源（origin）；例如 https://danlu.example.com",
)
SHORT_KEY = Text(
    "the session key is shorter than {least} bytes; make one: head -c 32 /dev/urandom | base64",
    "会话密钥短于 {least} 字节；可这样生成：head -c 32 /dev/urandom | base64",
)
KEY_VARIABLE = "DANLU_SESSION_KEY"
SHORTEST_KEY = 16  # bytes


@dataclass(frozen=True)
class Options(ClusterOptions):
    host: str = option(
        "--host",
        default="127.0.0.1",
        help=Text("address to listen on (default: 127.0.0.1)", "监听的地址（默认 127.0.0.1）"),
    )
    port: int = option(
        "--port",
        type=WHOLE,
        default=8080,
        help=Text("of the pages (default: 8080; 0: any free one)", "页面的端口（默认 8080；0 表示任意空闲端口）"),
    )
    apps_port: int = option(
        "--apps-port",
        type=WHOLE,
        default=8081,
        help=Text("of notebooks and TensorBoards (default: 8081)", "Notebook 和 TensorBoard 的端口（默认 8081）"),
    )
    url: str = option(
        "--url",
        default="",
        help=Text("where people open it (default: this machine)", "用户打开它的地址（默认：本机）"),
    )
    apps_url: str = option("--apps-url", metavar="URL", default="", help=APPS_URL)
    name: tuple[str, ...] = option(
        "--name",
        metavar="HOST",
        multiple=True,
        help=Text("another name it is reached by; may be repeated", "访问它的其他主机名；可重复"),
    )
    apps_through: str = option(
        "--apps-through",
        type=Choice(("auto", "services", "api")),
        default="auto",
        help=Text(
            "the way to notebooks: their Services by name (in a pod), or the API server's proxy (default: auto)",
            "访问 Notebook 的途径：按名称访问其 Service（在 Pod 中），或经 API server 的代理（默认 auto）",
        ),
    )
    session_key_file: Path | None = option(
        "--session-key-file",
        metavar="FILE",
        type=PATH,
        help=Text(
            f"a secret that all replicas share; also ${KEY_VARIABLE} (default: a new one at each start)",
            f"所有副本共用的密钥；也可用 ${KEY_VARIABLE}（默认：每次启动生成新的）",
        ),
    )
    session_hours: float = option(
        "--session-hours",
        metavar="N",
        type=NUMBER,
        default=12.0,
        help=Text("a sign-in's life (default: 12)", "一次登录的有效小时数（默认 12）"),
    )
    oidc_issuer: str = option("--oidc-issuer", metavar="URL", default="", help=OIDC_ISSUER)
    oidc_client_id: str = option("--oidc-client-id", metavar="ID", default="", help=OIDC_CLIENT_ID)
    oidc_client_secret_file: Path | None = option(
        "--oidc-client-secret-file",
        metavar="FILE",
        type=PATH,
        help=Text("if it has given one", "客户端密钥（如果有）"),
    )
    oidc_scopes: str = option(
        "--oidc-scopes",
        metavar="WORDS",
        default="",
        help=Text(f"what is asked for (default: {SCOPES})", f"请求的范围（默认：{SCOPES}）"),
    )
    oidc_token: str = option(
        "--oidc-token",
        type=Choice(TOKENS),
        default="",
        help=Text(
            "which of its tokens the cluster knows people by (default: id_token)",
            "集群用来识别用户的令牌（默认 id_token）",
        ),
    )
    oidc_ca_file: Path | None = option("--oidc-ca-file", metavar="FILE", type=PATH, help=OIDC_CA)
    oidc_folder: Path | None = option(
        "--oidc-folder",
        metavar="FOLDER",
        type=PATH,
        help=Text(
            f"the same as files, such as a mounted Secret ({', '.join(FILES)}); changes are taken up",
            f"用文件给出同样的设置，例如挂载的 Secret（{'、'.join(FILES)}）；修改会自动生效",
        ),
    )
    log_format: str = option("--log-format", type=Choice(logs.FORMATS), default="text", help=LOG_FORMAT)


def run(options: Options) -> int:
    try:
        cluster = config.load(options.kubeconfig, options.context)
    except config.ClientConfigError as error:
        raise CommandError(NAME_ONE(problem=translated(error))) from error
    logs.set_up(options.log_format, verbose=False)
    import uvloop

    try:
        return int(uvloop.run(_serve(options, cluster)))
    except OSError as error:
        problem = error.strerror or error
        said = CANNOT_LISTEN(host=options.host, port=options.port, apps_port=options.apps_port, problem=problem)
        raise CommandError(said) from error


async def _serve(options: Options, cluster: config.Config) -> int:
    listeners = bind(options.host, options.port), bind(options.host, options.apps_port)
    port, apps_port = (listener.getsockname()[1] for listener in listeners)
    identity = _identity(options)
    settings = _settings(options, identity, port, apps_port)
    api = OverHttp(cluster)
    server = ConsoleServer(settings, api, _reach(options, api), listeners[:1], listeners[1:])
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await server.start()
    line = SERVING(server=cluster.server, url=settings.url, apps_url=settings.apps_url)
    if options.log_format == "text":
        print(line, flush=True)
    else:
        log.info("%s", line)

    async def change_identity(found: OidcSettings | None) -> None:
        await server.change_identity(found)
        print(SIGN_IN(issuer=found.issuer) if found else NO_SIGN_IN(), flush=True)

    following = asyncio.create_task(identity.follow(settings.oidc, change_identity))
    await stop.wait()
    following.cancel()
    await server.stop()
    await server.close()
    return 0


def _identity(options: Options) -> OidcOptions:
    return OidcOptions(
        issuer=options.oidc_issuer,
        client_id=options.oidc_client_id,
        client_secret_file=options.oidc_client_secret_file,
        scopes=options.oidc_scopes,
        token=options.oidc_token,
        ca_file=options.oidc_ca_file,
        folder=options.oidc_folder,
    )


def _settings(options: Options, identity: OidcOptions, port: int, apps_port: int) -> ConsoleSettings:
    try:
        oidc = identity.settings()
    except OidcOptionError as error:
        raise UsageError(translated(error)) from error
    url = _origin("--url", options.url or f"http://127.0.0.1:{port}")
    # Another name than the console's: browsers then keep the cookies of the two apart, which they do not do for ports.
    apps_url = _origin("--apps-url", options.apps_url or _beside(url, apps_port))
    if url == apps_url:
        raise UsageError(SAME_ORIGIN())
    if options.session_hours <= 0:
        raise UsageError(TOO_SHORT_SIGN_IN(hours=options.session_hours))
    return ConsoleSettings(
        target="cluster",
        url=url,
        apps_url=apps_url,
        key=_key(options.session_key_file),
        session_s=int(options.session_hours * HOUR),
        oidc=oidc,
        names=tuple(options.name),
    )


def _beside(url: str, apps_port: int) -> str:
    parts = urlsplit(url)
    host = "localhost" if parts.hostname == "127.0.0.1" else parts.hostname
    return f"{parts.scheme}://{host}:{apps_port}"


def _origin(option: str, url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise UsageError(NO_ORIGIN(option=option, url=url))
    return f"{parts.scheme}://{parts.netloc}"


def _key(file: Path | None) -> bytes:
    text = read("--session-key-file", file) if file else os.environ.get(KEY_VARIABLE, "").encode()
    if not text:
        return secrets.token_bytes(32)
    if len(text.strip()) < SHORTEST_KEY:
        raise UsageError(SHORT_KEY(least=SHORTEST_KEY))
    return hashlib.sha256(text.strip()).digest()


def _reach(options: Options, api: OverHttp) -> Reach:
    in_a_pod = bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and options.kubeconfig is None
    by_service = options.apps_through == "services" or (options.apps_through == "auto" and in_a_pod)
    return Directly() if by_service else ThroughApi(api)
