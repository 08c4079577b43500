"""How the replicas of a job find each other: variables that torch and TensorFlow read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from danlu.kinds._training.job import Job, Replica
from danlu.meta.kind import Object

Environment = list[Object]

# torchrun lets its processes meet at a store of the agents, and says where that is only once: a node that joins later
# (a worker that was killed and made anew) asks in vain and gives up after a minute. With this it is said every round.
TOLD_EVERY_ROUND = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def variables(pairs: Mapping[str, str]) -> Environment:
    return [{"name": name, "value": value} for name, value in pairs.items()]


def torch(*, address: str, port: int, world_size: int, rank: int) -> dict[str, str]:
    """What `init_process_group("env://")` and torchrun (its own names begin with PET_) need, in Kubeflow's order."""
    return {
        "MASTER_PORT": str(port),
        "PET_MASTER_PORT": str(port),
        "MASTER_ADDR": address,
        "PET_MASTER_ADDR": address,
        "WORLD_SIZE": str(world_size),
        "RANK": str(rank),
        "PET_NODE_RANK": str(rank),
    }


def tf_config(
    job: Job, replica: Replica, address: Callable[[Replica], str], *, environment: str = "cloud", without: str = ""
) -> str:
    """`without`: a role that looks on and is no part of the cluster."""
    cluster = job.texts.get("cluster")
    if cluster is None:  # the same for all replicas, and as long as there are many of them: once for each look
        members: dict[str, list[str]] = {}
        for one in job.replicas:
            if one.role.slug != without:
                members.setdefault(one.role.slug, []).append(address(one))
        cluster = job.texts["cluster"] = _json(dict(sorted(members.items())))
    rest: Object = {"task": _task(replica)}
    if environment:
        rest["environment"] = environment
    return f'{{"cluster":{cluster},{_json(rest)[1:]}'


def sparse_tf_config(job: Job, replica: Replica, address: Callable[[Replica], str]) -> str:
    """For workers that come and go: a worker knows itself and all parameter servers, a server only itself."""
    workers: dict[str, str] = {}
    servers: list[str] = []
    if replica.role.slug == "worker":
        workers = {str(replica.index): address(replica)}
        servers = [address(one) for one in job.replicas if one.role.slug == "ps"]
    elif replica.role.slug == "ps":
        servers = [address(replica)]
    config = {"cluster": {"worker": workers, "ps": servers}, "task": _task(replica)}
    return _json(config)


def _json(value: Object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _task(replica: Replica) -> Object:
    return {"type": replica.role.slug, "index": replica.index}
