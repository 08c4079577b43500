"""`--nodes`: how many virtual nodes, and what each offers."""

from __future__ import annotations

from danlu.cli.language import Text
from danlu.embedded.settings import NodeShare
from danlu.meta import names, quantity

MAX_NODES = 500
HOW_MANY = Text("{count} nodes; choose 1 to {most}", "{count} 个节点；请选择 1 到 {most}")
TWICE = Text("two nodes have the same name", "有两个节点同名")
NONE = Text("no node is named", "没有写出任何节点")
NO_NAME = Text(
    "{name!r} is not a name for a node; it has lower case letters, digits, - and .",
    "{name!r} 不能作为节点的名称；名称由小写字母、数字、- 和 . 组成",
)
SAID_TWICE = Text("{name}: {what} is said twice", "{name}：{what} 写了两次")
UNKNOWN = Text("{what!r} is not known; a node has cpu, memory and gpu", "不认识 {what!r}；节点有 cpu、memory 和 gpu")
NO_AMOUNT = Text(
    "{amount!r} is not an amount of {what}; write for instance {example}",
    "{amount!r} 不是 {what} 的数量；例如 {example}",
)
WHOLE_GPUS = Text("{part}: GPUs come whole", "{part}：GPU 只能是整块")
TOO_LITTLE = Text("{part}: a node needs more than that", "{part}：节点需要比这更多")
CPU_EXAMPLE = Text("cpu=2 or cpu=500m", "cpu=2 或 cpu=500m")
EXAMPLES = {"memory": "memory=4Gi", "gpu": "gpu=1", "gpus": "gpu=1"}


def parse_nodes(text: str) -> list[NodeShare]:
    """`3`, or `a:cpu=2,memory=4Gi,gpu=1;b`. Raises ValueError with what is wrong."""
    if text.isdecimal():
        count = int(text)
        if not 1 <= count <= MAX_NODES:
            raise ValueError(HOW_MANY(count=count, most=MAX_NODES))
        return [] if count == 1 else [NodeShare(f"node-{index}") for index in range(count)]
    shares = [_share(part) for part in text.split(";") if part.strip()]
    if len({share.name for share in shares}) != len(shares):
        raise ValueError(TWICE())
    if not shares:
        raise ValueError(NONE())
    return shares


def _share(text: str) -> NodeShare:
    name, _, rest = text.strip().partition(":")
    if names.dns_subdomain(name):
        raise ValueError(NO_NAME(name=name))
    share, said = NodeShare(name), set[str]()
    for part in filter(None, rest.split(",")):
        what, _, amount = part.strip().partition("=")
        if what in said:
            raise ValueError(SAID_TWICE(name=name, what=what))
        said.add(what)
        if what not in ("cpu", "memory", "gpu", "gpus"):
            raise ValueError(UNKNOWN(what=what))
        try:
            value = quantity.parse(amount)
        except ValueError:
            raise ValueError(NO_AMOUNT(amount=amount, what=what, example=EXAMPLES.get(what) or CPU_EXAMPLE())) from None
        if what == "cpu":
            share.cpu = _positive(value.milli(), part) / 1000
        elif what == "memory":
            share.memory = _positive(value.value(), part)
        elif value.milli() % 1000 or value.value() < 0:
            raise ValueError(WHOLE_GPUS(part=part.strip()))
        else:
            share.gpus = value.value()
    return share


def _positive(amount: int, part: str) -> int:
    if amount <= 0:
        raise ValueError(TOO_LITTLE(part=part.strip()))
    return amount
