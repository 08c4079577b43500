"""`danlu install`: Danlu on a cluster. Looks first, shows what would change, changes it, waits until it works."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from danlu import __version__
from danlu.cli import clusterclient
from danlu.cli.command import flag, option
from danlu.cli.failures import CommandError, UsageError
from danlu.cli.language import Text, translated
from danlu.cli.optionfiles import read
from danlu.cli.sharedoptions import (
    APPS_URL,
    CONSOLE_URL,
    GANG,
    OIDC_CA,
    OIDC_CLIENT_ID,
    YES,
    ClusterOptions,
)
from danlu.cli.valuetypes import NUMBER, PATH, WHOLE, Choice
from danlu.client.client import Client
from danlu.operator.install import plan, planexecution, preflight, readiness
from danlu.operator.install.installation import (
    CA,
    CLIENT_ID,
    CLIENT_SECRET,
    ISSUER,
    NONE,
    REMEMBERED,
    Installation,
    InstalledElsewhere,
    InstallRequest,
    deployments,
    prepare,
)
from danlu.operator.install.options import GANGS, NAMESPACE, InstallOptions, OptionError
from danlu.operator.logs import FORMATS

SIGNS = {"create": "+", "change": "~", "delete": "-"}
MOST_LINES = 40  # of one object's difference; a definition's can have thousands


TITLE = Text(
    "Danlu {version} on {server}, namespace {namespace}", "丹炉 {version}，集群 {server}，命名空间 {namespace}"
)
REFUSED = Text(
    "{problem}. Nothing was changed; who installs needs every right that the roles grant, as cluster-admin has",
    "{problem}。未做任何改动；安装者需要拥有这些角色授予的全部权限，例如 cluster-admin",
)
NOTE = Text("note: {line}", "注意：{line}")
WARNING = Text("warning: {finding}", "警告：{finding}")
NOTHING_CHANGES = Text("nothing changes: all of it is installed as it should be", "没有改动：全部已按要求安装")
DRY = Text("nothing was changed (--dry-run)", "未做任何改动（--dry-run）")
QUESTION = Text("Change this?", "执行这些改动？")
NOTHING = Text("nothing was changed", "未做任何改动")
NOTHING_CHANGED = Text("Nothing was changed.", "未做任何改动。")
ELSEWHERE = Text(
    "Danlu is installed in namespace {namespace} already; one cluster has one. Change it there with --namespace "
    "{namespace}, or take it away first: danlu uninstall",
    "丹炉已安装在命名空间 {namespace}；一个集群只装一份。"
    "请用 --namespace {namespace} 在那里更改，或先卸载：danlu uninstall",
)
UPGRADES = Text("upgrades version {version}; jobs keep running", "从版本 {version} 升级；作业继续运行")
AS_BEFORE = Text("as chosen before: {chosen}", "沿用此前的选择：{chosen}")
IS_ON, IS_OFF = Text("yes", "是"), Text("no", "否")
MORE_LINES = Text("… {count} more lines; --dry-run shows all", "…另有 {count} 行；--dry-run 显示全部")
COUNTED = {
    "create": Text("{count} to create", "新建 {count}"),
    "change": Text("{count} to change", "更改 {count}"),
    "delete": Text("{count} to delete", "删除 {count}"),
    "same": Text("{count} as is", "不变 {count}"),
}
FIRST_JOB = Text(
    "Danlu is installed. A first job: kubectl apply -f examples/03-kubeflow-pytorchjob/job.yaml; "
    "docs/en/how-to/cluster.md tells more",
    "丹炉已安装。第一个作业：kubectl apply -f examples/03-kubeflow-pytorchjob/job.yaml；详见 docs/zh/how-to/cluster.md",
)
OPEN_CONSOLE = Text(
    "The console: kubectl -n {namespace} port-forward service/danlu-console 8080:80 8081:8081, "
    "then http://127.0.0.1:8080",
    "控制台：kubectl -n {namespace} port-forward service/danlu-console 8080:80 8081:8081，"
    "然后打开 http://127.0.0.1:8080",
)


@dataclass(frozen=True)
class Options(ClusterOptions):
    namespace: str | None = option(
        "-n",
        "--namespace",
        metavar="NAME",
        help=Text(
            f"where the operator and the console run (default: {NAMESPACE})",
            f"Operator 和控制台所在的命名空间（默认 {NAMESPACE}）",
        ),
    )
    image: str | None = option(
        "--image",
        help=Text(
            "of the operator and the console (default: that of this version)",
            "Operator 和控制台的镜像（默认：与本版本对应的镜像）",
        ),
    )
    replicas: int | None = option(
        "--replicas",
        metavar="N",
        type=WHOLE,
        help=Text(
            "of the operator: one works, the others stand by (default: 2)",
            "Operator 的副本数：一个工作，其余待命（默认 2）",
        ),
    )
    gang: str | None = option("--gang", type=Choice(GANGS), help=GANG)
    log_format: str | None = option(
        "--log-format",
        type=Choice(FORMATS),
        help=Text(
            "of the operator and the console (default: text; json: one object a line)",
            "Operator 和控制台的日志格式（默认 text；json 表示每行一个 JSON 对象）",
        ),
    )
    console_url: str | None = option("--console-url", metavar="URL", help=CONSOLE_URL)
    apps_url: str | None = option("--apps-url", metavar="URL", help=APPS_URL)
    console_arguments: str | None = option(
        "--console-arguments",
        metavar="WORDS",
        help=Text(
            "further ones for `danlu console`, such as --session-hours=8",
            "传给 `danlu console` 的其他参数，例如 --session-hours=8",
        ),
    )
    oidc_issuer: str | None = option(
        "--oidc-issuer",
        metavar="URL",
        help=Text(
            "people sign in to the console with this identity provider; none: no longer",
            "用户通过该身份提供方登录控制台；none：不再使用",
        ),
    )
    oidc_client_id: str | None = option("--oidc-client-id", metavar="ID", help=OIDC_CLIENT_ID)
    oidc_client_secret_file: Path | None = option(
        "--oidc-client-secret-file",
        metavar="FILE",
        type=PATH,
        help=Text("if it has given one; kept in a Secret", "身份提供方给出的密钥（如有）；保存在 Secret 中"),
    )
    oidc_ca_file: Path | None = option("--oidc-ca-file", metavar="FILE", type=PATH, help=OIDC_CA)
    console: bool | None = flag(
        "--console/--no-console",
        default=None,
        help=Text("with the web console (default: yes)", "安装网页控制台（默认是）"),
    )
    network_policies: bool | None = flag(
        "--network-policies/--no-network-policies",
        default=None,
        help=Text(
            "limit who reaches the operator and the console (default: yes)", "限制谁能访问 Operator 和控制台（默认是）"
        ),
    )
    without_kinds: str | None = option(
        "--without-kinds",
        metavar="A,B",
        help=Text(
            "kinds that another operator has: kubeflow, tensorstack, or single ones; none: all are Danlu's",
            "由其他 Operator 管理的类型：kubeflow、tensorstack 或单个类型；none 表示全部由丹炉管理",
        ),
    )
    addons: str | None = option(
        "--addons",
        metavar="A,B",
        help=Text(
            "for GPU nodes: nvidia (device plugin), dcgm (metrics); none (default)",
            "用于 GPU 节点：nvidia（设备插件）、dcgm（指标）；none（默认）",
        ),
    )
    take_over: bool = flag(
        "--take-over",
        help=Text("change definitions of kinds that somebody else installed", "允许更改他人安装的类型定义"),
    )
    crds_only: bool = flag("--crds-only", help=Text("only the definitions of the kinds", "只安装类型的定义"))
    dry_run: bool = flag(
        "--dry-run",
        help=Text("check, show what would change, and change nothing", "检查并显示将要改动的内容，但不做改动"),
    )
    yes: bool = flag("-y", "--yes", help=YES)
    wait: bool = flag(
        "--wait/--no-wait", default=True, help=Text("until it works (default: yes)", "等到正常工作为止（默认是）")
    )
    timeout: float = option(
        "--timeout",
        metavar="S",
        type=NUMBER,
        default=300.0,
        help=Text("seconds to wait at most (default: 300)", "最多等待的秒数（默认 300）"),
    )


def run(options: Options) -> int:
    async def work(client: Client, server: str) -> int:
        return await _install(client, server, options)

    return clusterclient.on_cluster(options, work)


async def _install(client: Client, server: str, options: Options) -> int:
    request = _request(options)
    found = await _prepare(client, request)
    print(TITLE(version=__version__, server=server, namespace=found.options.namespace))
    _tell_kept(found, request)
    await _check(client, found)
    try:
        made = await plan.make(client, found.wanted, prune=not options.crds_only)
    except plan.Refused as error:
        raise CommandError(REFUSED(problem=translated(error))) from error
    for line in made.left_out:
        print(NOTE(line=translated(line)))
    _show(made, all_lines=options.dry_run)
    if not made.wanted:
        print(NOTHING_CHANGES())
    elif options.dry_run:
        print(DRY())
        return 0
    else:
        if not clusterclient.agreed(QUESTION(), options.yes):
            print(NOTHING())
            return 1
        await planexecution.carry_out(client, made, _say)
    if options.dry_run or not options.wait or options.crds_only:
        return 0
    try:
        await readiness.wait(client, deployments(made), options.timeout, _say)
    except readiness.NotInstalled as error:
        raise CommandError(translated(error)) from error
    if made.wanted:
        _tell_next(found.options)
    return 0


async def _prepare(client: Client, request: InstallRequest) -> Installation:
    try:
        return await prepare(client, request)
    except OptionError as error:
        raise UsageError(translated(error)) from error
    except InstalledElsewhere as error:
        raise CommandError(ELSEWHERE(namespace=error.namespace)) from error


def _say(line: str) -> None:
    print(translated(line), flush=True)


def _request(options: Options) -> InstallRequest:
    return InstallRequest(
        chosen={name: value for name in REMEMBERED if (value := getattr(options, name)) is not None},
        namespace=options.namespace,
        identity=None if options.oidc_issuer == NONE else _identity(options),
        take_over=options.take_over,
        crds_only=options.crds_only,
    )


def _identity(options: Options) -> dict[str, bytes]:
    given = {ISSUER: options.oidc_issuer, CLIENT_ID: options.oidc_client_id}
    found = {name: text.encode() for name, text in given.items() if text}
    files = ((CLIENT_SECRET, options.oidc_client_secret_file), (CA, options.oidc_ca_file))
    for name, file in files:
        if file is not None:
            found[name] = read("--oidc-client-secret-file" if name == CLIENT_SECRET else "--oidc-ca-file", file)
    return found


# ---------------------------------------------------------------- what is told


async def _check(client: Client, wanted: Installation) -> None:
    found = await preflight.findings(preflight.CheckAnswer(client, wanted.options, wanted.wanted))
    for finding in found:
        if not finding.fatal:
            print(WARNING(finding=_told(finding)))
    fatal = [finding for finding in found if finding.fatal]
    if fatal:
        raise CommandError("\ndanlu: ".join(map(_told, fatal)) + f"\n{NOTHING_CHANGED()}")


def _told(finding: preflight.CheckFinding) -> str:
    return f"{translated(finding.what)}\n    → {translated(finding.remedy)}"


def _tell_kept(found: Installation, request: InstallRequest) -> None:
    if found.last is not None and found.last.version != __version__:
        print(UPGRADES(version=found.last.version))
    kept = found.kept(request)
    if kept:
        said = ", ".join(f"{name.replace('_', '-')} {_said(found.chosen[name])}" for name in kept)
        print(AS_BEFORE(chosen=said))


def _said(value: object) -> str:
    return (IS_ON if value else IS_OFF)() if isinstance(value, bool) else str(value)


def _show(made: plan.InstallPlan, *, all_lines: bool) -> None:
    for change in made.wanted:
        print(f"  {SIGNS[change.action]} {change.title}")
        lines = [line for line in change.diff[2:] if not line.startswith("@@")]
        shown = lines if all_lines else lines[:MOST_LINES]
        for line in shown:
            print(f"      {line}")
        if len(lines) > len(shown):
            print(f"      {MORE_LINES(count=len(lines) - len(shown))}")
    counted = ", ".join(
        text(count=count)
        for action, text in COUNTED.items()
        if (count := sum(change.action == action for change in made.changes))
    )
    print(counted)


def _tell_next(options: InstallOptions) -> None:
    print(FIRST_JOB())
    if options.console and not options.console_url:
        print(OPEN_CONSOLE(namespace=options.namespace))
