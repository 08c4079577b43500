"""`--nodes`: how many virtual nodes, and what each offers."""

from __future__ import annotations

from danlu.meta import names, quantity
from danlu.settings import NodeShare

MAX_NODES = 500
EXAMPLES = {"cpu": "cpu=2 or cpu=500m", "memory": "memory=4Gi", "gpu": "gpu=1", "gpus": "gpu=1"}


def parse_nodes(text: str) -> list[NodeShare]:
    """`3`, or `a:cpu=2,memory=4Gi,gpu=1;b`. Raises ValueError with what is wrong."""
    if text.isdecimal():
        count = int(text)
        if not 1 <= count <= MAX_NODES:
            raise ValueError(f"{count} nodes; choose 1 to {MAX_NODES}")
        return [] if count == 1 else [NodeShare(f"node-{index}") for index in range(count)]
    shares = [_share(part) for part in text.split(";") if part.strip()]
    if len({share.name for share in shares}) != len(shares):
        raise ValueError("two nodes have the same name")
    if not shares:
        raise ValueError("no node is named")
    return shares


def _share(text: str) -> NodeShare:
    name, _, rest = text.strip().partition(":")
    if names.dns_subdomain(name):
        raise ValueError(f"{name!r} is not a name for a node; it has lower case letters, digits, - and .")
    share, said = NodeShare(name), set[str]()
    for part in filter(None, rest.split(",")):
        what, _, amount = part.strip().partition("=")
        if what in said:
            raise ValueError(f"{name}: {what} is said twice")
        said.add(what)
        if what not in ("cpu", "memory", "gpu", "gpus"):
            raise ValueError(f"{what!r} is not known; a node has cpu, memory and gpu")
        try:
            value = quantity.parse(amount)
        except ValueError:
            raise ValueError(f"{amount!r} is not an amount of {what}; write for instance {EXAMPLES[what]}") from None
        if what == "cpu":
            share.cpu = _positive(value.milli(), part) / 1000
        elif what == "memory":
            share.memory = _positive(value.value(), part)
        elif value.milli() % 1000 or value.value() < 0:
            raise ValueError(f"{part.strip()}: GPUs come whole")
        else:
            share.gpus = value.value()
    return share


def _positive(amount: int, part: str) -> int:
    if amount <= 0:
        raise ValueError(f"{part.strip()}: a node needs more than that")
    return amount
