"""`danlu status`: whether it runs, where, and how pods are run on this machine. Exit code 3 when it does not run."""

from __future__ import annotations

import json
import shutil
import ssl
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from danlu.cli import layout
from danlu.cli.command import CommandOptions, flag
from danlu.cli.language import Text, language, speaking, translated
from danlu.cli.local.trustwords import model
from danlu.cli.place import data_directory
from danlu.cli.sharedoptions import FOR_PROGRAMS
from danlu.embedded.damage import summary
from danlu.embedded.datadir import DataDirectory, Running
from danlu.embedded.storage import Quarantine
from danlu.embedded.trust import ALONE, SHARED
from danlu.meta import yamlreader

NOT_RUNNING = 3
LABELS = {
    "state": Text("state", "状态"),
    "alarm": Text("alarm", "告警"),
    "url": Text("url", "API 地址"),
    "console": Text("console", "控制台"),
    "trust": Text("trust", "使用方式"),
    "pid": Text("pid", "进程号"),
    "since": Text("since", "启动于"),
    "version": Text("version", "版本"),
    "data": Text("data", "数据目录"),
    "kubeconfig": Text("kubeconfig", "kubeconfig"),
    "pods": Text("pods", "Pod"),
    "ingress": Text("ingress", "Ingress 地址"),
    "limits": Text("limits", "资源限制"),
    "held": Text("held", "被占用"),
    "set aside": Text("set aside", "已搁置"),
    "operators": Text("operators", "其他 operator"),
    "damage": Text("damage", "损坏"),
}
RUNNING = Text("running", "正在运行")
SILENT = Text("running, but its API does not answer", "正在运行，但 API 没有响应")
STOPPED = Text("not running; `danlu up` starts it", "没有运行；用 `danlu up` 启动")
BY_KERNEL = Text(
    "{controllers}: kept by the kernel (cgroup version {version})", "{controllers}：由内核执行（cgroup v{version}）"
)
BY_HAND = Text(
    "memory is checked four times a second; cpu and process limits have no effect: {problem}",
    "内存每秒检查四次；CPU 和进程数的限制不起作用：{problem}",
)
NO_CONSOLE = Text("none (--no-console)", "没有（--no-console）")
NO_SPACE = Text(
    "NOSPACE: the store has no room to grow ({free:.0f} MiB free on its disk); nothing is created until there is some: "
    "delete objects (deletes work), or free disk space",
    "NOSPACE：存储没有增长的空间（所在磁盘剩余 {free:.0f} MiB）；在腾出空间之前无法创建任何内容："
    "请删除对象（删除仍可用）或释放磁盘空间",
)


@dataclass(frozen=True)
class Options(CommandOptions):
    json: bool = flag("--json", help=FOR_PROGRAMS)


def run(options: Options) -> int:
    directory = data_directory(options)
    holder = directory.holder()
    if options.json:
        with speaking("en"):
            print(json.dumps(facts(directory, holder), indent=2))
    else:
        print("\n".join(layout.facts([*_lines(facts(directory, holder))], left=11)))
    return 0 if holder else NOT_RUNNING


def _lines(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if "trust" in found:
        found["trust"] = model(found["trust"] == SHARED)
    for name, value in found.items():
        for line in value if isinstance(value, list) else [value]:
            yield LABELS[name](), str(line)


def facts(directory: DataDirectory, holder: Running | None) -> dict[str, Any]:
    from danlu.embedded.node.sandbox import detection
    from danlu.standalone.consolelink import link

    found: dict[str, Any] = {"state": (RUNNING if holder else STOPPED)()}
    if holder:
        said = _health(directory, holder.url)
        found["state"] = (RUNNING if said else SILENT)()
        if "alarm:NOSPACE" in said:
            found["alarm"] = _alarm(directory)
        found |= {"url": holder.url, "console": link(directory.root, holder.pid) or NO_CONSOLE()}
        found["trust"] = SHARED if holder.shared else ALONE
        found |= {"pid": holder.pid, "since": holder.started, "version": holder.version}
    found["data"] = str(directory.root)
    found["kubeconfig"] = str(directory.kubeconfig)
    found["pods"] = translated(detection.capabilities().reason)
    found["limits"] = _limits()
    ingress = directory.read_ingress() if holder else []
    if ingress:
        found["ingress"] = ingress
    held = directory.read_held() if holder else []
    if held:
        found["held"] = [translated(line) for line in held]
    operators = directory.read_operators() if holder else []
    if operators:
        found["operators"] = [cause.text(language()) for cause in operators]
    set_aside = directory.read_set_aside()
    if set_aside:
        found["set aside"] = [translated(str(entry)) for entry in set_aside]
    damaged = summary(Quarantine(directory.quarantine).findings())
    if damaged:
        found["damage"] = translated(damaged)
    return found


def _limits() -> str:
    from danlu.embedded.node.sandbox import cgroups

    tree = cgroups.find()
    if not tree.parents:
        return BY_HAND(problem=tree.problem)
    return BY_KERNEL(controllers=", ".join(tree.parents), version=tree.version)


def _alarm(directory: DataDirectory) -> str:
    free = shutil.disk_usage(directory.root).free / (1 << 20)
    return NO_SPACE(free=free)


def _health(directory: DataDirectory, url: str) -> str:
    """What the API says of itself; "" when it does not answer."""
    try:
        config = yamlreader.load(directory.kubeconfig.read_bytes())[0]
        authority = config["clusters"][0]["cluster"]["certificate-authority-data"]
        import base64

        context = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
        with urllib.request.urlopen(f"{url}/readyz?verbose", context=context, timeout=5) as answer:
            return str(answer.read().decode(errors="replace"))
    except (OSError, ValueError, KeyError):
        return ""
