"""Ports where pods share the host's network."""

from __future__ import annotations

from typing import Any

from danlu.kinds._training import ports
from danlu.kinds._training.job import NEVER, Job, Role, RunPolicy
from danlu.kinds._training.observation import Observed
from danlu.kinds._training.ports import Port
from danlu.meta.kind import Kind

KIND = Kind("example.org", "v1", "Job", "jobs")
NAME = "train-port"


def a_job(uid: str, replicas: int = 2, port: int | None = None) -> Job:
    container: dict[str, Any] = {"name": "train"}
    if port is not None:
        container["ports"] = [{"name": NAME, "containerPort": port}]
    template = {"spec": {"containers": [container]}}
    obj = {"metadata": {"name": "j", "namespace": "n", "uid": uid}, "spec": {}}
    return Job(KIND, obj, (Role("Worker", replicas, template, NEVER),), RunPolicy())


def plan(
    job: Job, taken: set[int] | None = None, *, each: bool = True, services: Any = (), pods: Any = ()
) -> list[int]:
    observed = Observed(services=services, pods=pods, taken_ports=taken or set())
    found = ports.planned(job, observed, "train", Port(NAME, 2222, for_each_replica=each))
    return list(found.values())


def service(name: str, port: int) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"name": NAME, "port": port}]}}


def test_the_choice_follows_from_the_uid_and_stays_below_ephemeral_ports() -> None:
    assert plan(a_job("a")) == plan(a_job("a"))
    assert plan(a_job("a")) != plan(a_job("b"))
    assert all(20000 <= port < 30000 for uid in range(200) for port in plan(a_job(str(uid), 8)))


def test_each_replica_has_its_own_where_all_listen() -> None:
    assert len(set(plan(a_job("a", 5)))) == 5
    assert len(set(plan(a_job("a", 5), each=False))) == 1


def test_what_others_have_is_skipped() -> None:
    first = plan(a_job("a"))
    assert not set(plan(a_job("a"), set(first))) & set(first)


def test_a_port_that_the_template_names_is_kept_if_it_is_free() -> None:
    assert plan(a_job("a", 1, 12345)) == [12345]
    assert plan(a_job("a", 1, 12345), {12345}) == plan(a_job("a", 1))
    one, two = plan(a_job("a", 2, 12345))
    assert one == 12345 != two, "replicas of one job do not share it either"


def test_services_remember_and_so_do_pods() -> None:
    assert plan(a_job("a"), services=[service("j-worker-0", 25000), service("j-worker-1", 25007)]) == [25000, 25007]
    container = {"name": "train", "ports": [{"name": NAME, "containerPort": 25001}]}
    pod = {"metadata": {"name": "j-worker-1"}, "spec": {"containers": [container]}}
    one, two = plan(a_job("a"), services=[service("j-worker-0", 25000)], pods=[pod])
    assert (one, two) == (25000, 25001)


def test_a_replica_that_is_added_takes_no_port_of_another() -> None:
    known = plan(a_job("a", 3))
    grown = plan(a_job("a", 4), services=[service(f"j-worker-{i}", port) for i, port in enumerate(known)])
    assert grown[:3] == known
    assert len(set(grown)) == 4


def test_in_a_cluster_every_pod_has_the_usual_port() -> None:
    assert list(ports.fixed(a_job("a"), "train", Port(NAME, 2222)).values()) == [2222, 2222]
    assert list(ports.fixed(a_job("a", 2, 99), "train", Port(NAME, 2222)).values()) == [99, 99]
