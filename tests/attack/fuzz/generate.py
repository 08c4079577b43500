"""Episodes from a seed. Nothing here depends on what a server answers: an episode is the same wherever it is played."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.attack.fuzz import bodies
from tests.attack.fuzz.people import ADMIN, ANONYMOUS, EVERY_NAMESPACE, PEOPLE
from tests.attack.fuzz.steps import Step, Value

JSON, YAML = "application/json", "application/yaml"
JSON_PATCH, MERGE, STRATEGIC = (
    "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"
)  # fmt: skip
APPLY, PROTOBUF = "application/apply-patch+yaml", "application/vnd.kubernetes.protobuf"
SUBRESOURCES = ("status", "scale", "finalize", "log", "exec", "attach", "portforward", "proxy", "token", "eviction",
                "binding", "ephemeralcontainers", "resize", "approval", "proxy/../../..", "status/x", "*")  # fmt: skip
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
STEPS = (20, 80)  # in an episode

Family = Callable[["Maker"], list[Step]]


def episode(seed: int, number: int) -> list[Step]:
    maker = Maker(random.Random(f"{seed} {number}"))
    wanted = maker.rng.randint(*STEPS)
    found: list[Step] = []
    while len(found) < wanted:
        family = maker.rng.choices(list(FAMILIES), list(FAMILIES.values()))[0]
        steps = family(maker)
        for step in steps:
            step.family = step.family or family.__name__.strip("_")
        found += steps
    return found


def episodes(seed: int) -> Iterator[list[Step]]:
    number = 0
    while True:
        yield episode(seed, number)
        number += 1


class Maker:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def person(self) -> str:
        return self.rng.choices(list(PEOPLE), [5, 5, 2, 3, 1])[0]

    def worker(self) -> str:
        return self.rng.choice(["alice", "bob"])

    def home(self, person: str) -> str:
        return PEOPLE[person].home or self.rng.choice(EVERY_NAMESPACE)

    def victim(self, person: str) -> str:
        return self.rng.choice([name for name in (*EVERY_NAMESPACE, "kube-system") if name != PEOPLE[person].home])

    def name(self) -> str:
        return f"fuzz-{self.rng.randrange(6)}"

    def canary(self, namespace: str) -> str:
        return f"canary-{namespace}{self.rng.randrange(3)}"

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def body(self, obj: Any, **more: Any) -> tuple[dict[str, Any], str]:
        """An object as JSON or YAML, and its content type."""
        if self.chance(0.2):
            return {"yaml": obj, **more}, YAML
        return {"json": obj, **more}, JSON


def collection(plural: str, namespace: str = "") -> str:
    group = bodies.TEMPLATES[plural][0]
    return f"{group}/namespaces/{namespace}/{plural}" if namespace else f"{group}/{plural}"


# -- families: each returns a few steps that belong together


def ordinary(make: Maker) -> list[Step]:
    """What people do all day, with something odd in it now and then."""
    person = make.person()
    plural = make.rng.choice(bodies.NAMESPACED)
    name, home = make.name(), make.home(person)
    method = make.rng.choices(["POST", "GET", "PUT", "DELETE", "LIST", "CLEAR"], [8, 2, 3, 2, 2, 0.3])[0]
    path = collection(plural, home)
    if method in ("GET", "DELETE"):
        return [Step(person, method, f"{path}/{name}")]
    if method in ("LIST", "CLEAR"):
        accept = make.rng.choice([{}, {"accept": TABLE}, {"accept": PARTIAL}, {"accept": YAML}])
        return [Step(person, "GET" if method == "LIST" else "DELETE", path, headers=accept)]
    obj = bodies.make(plural, name)
    about = ", ".join(bodies.disturb(make.rng, obj) for _ in range(make.rng.choice([0, 1, 1, 2])))
    body, kind = make.body(obj)
    query: list[tuple[str, Value]] = []
    if make.chance(0.2):
        query = [make.rng.choice([("dryRun", "All"), ("fieldValidation", "Strict"), ("fieldValidation", "Ignore")])]
    target = path if method == "POST" else f"{path}/{name}"
    return [Step(person, method, target, query, body, {"content-type": kind}, about=about)]


def paths(make: Maker) -> list[Step]:
    """Somebody else's things, by a path that may be taken for one's own."""
    person = make.person()
    own, victim = make.home(person), make.victim(person)
    plural = make.rng.choice(bodies.COMMON)
    name = make.canary(victim)
    group = bodies.TEMPLATES[plural][0]
    cluster = make.rng.choice(bodies.CLUSTER_SCOPED)
    cluster_group = bodies.TEMPLATES[cluster][0]
    cluster_name = {"namespaces": victim, "clusterroles": "cluster-admin"}.get(cluster, "fuzz-cluster")
    tail = make.rng.choice(["", f"/{name}", f"/{name}", f"/{name}/{make.rng.choice(SUBRESOURCES)}"])
    shapes = [
        f"{group}/namespaces/{victim}/{plural}{tail}",
        f"{group}/{plural}{tail}",
        f"/api/v1/namespaces/{own}/namespaces/{victim}",
        f"/api/v1/namespaces/{own}/namespaces/{victim}/{make.rng.choice(['status', 'finalize', plural])}",
        f"/api/v1/namespaces/{own}/namespaces",
        f"{group}/namespaces/{own}/namespaces/{victim}/{plural}{tail}",
        f"{cluster_group}/namespaces/{own}/{cluster}",
        f"{cluster_group}/namespaces/{own}/{cluster}/{cluster_name}",
        f"{cluster_group}/namespaces/{own}/{cluster}/{cluster_name}/{make.rng.choice(SUBRESOURCES)}",
        f"{cluster_group}/{cluster}/{cluster_name}",
        f"{group}/watch/namespaces/{victim}/{plural}",
        f"{group}/watch/{plural}",
        f"{group}/namespaces/{own}/../{victim}/{plural}{tail}",
        f"{group}/namespaces/{own}%2f..%2f{victim}/{plural}{tail}",
        f"{group}/namespaces/{own}/{plural}/..%2f..%2f{victim}%2f{plural}%2f{name}",
        f"{group}/namespaces/{own}/{plural}/%2e%2e/%2e%2e/{victim}/{plural}/{name}",
        f"{group}/namespaces/%2a/{plural}{tail}",
        f"{group}/namespaces/*/{plural}{tail}",
        f"{group}/namespaces//{plural}{tail}",
        f"{group}//namespaces/{victim}//{plural}{tail}",
        f"{group}/namespaces/{own}/{plural}/{victim}%2f{name}",
        f"{group}/namespaces/{own}%00{victim}/{plural}{tail}",
        f"{group}/namespaces/{own}/{plural}/{name}%00",
        f"{group}/namespaces/{own};{victim}/{plural}{tail}",
        f"{group}/namespaces/{own}/pods/fuzz-0/proxy/../../../{victim}/{plural}/{name}",
        f"{group}/namespaces/{own}/services/https:kubernetes:443/proxy/api/v1/namespaces/{victim}/{plural}",
        f"{group}/namespaces/{own}/namespaces%2f{victim}%2f{plural}/{name}",
        f"{group}/Namespaces/{victim}/{plural.capitalize()}{tail}",
        f"/apis/v1/namespaces/{victim}/{plural}{tail}",
        f"/api/v1/nodes/x/proxy/../../namespaces/{victim}/{plural}",
    ]
    path = make.rng.choice(shapes)
    if make.chance(0.15):
        path = encoded(make.rng, path)
    return [_aimed(make, person, path, plural if f"/{plural}" in path else cluster, name, victim)]


def _aimed(make: Maker, person: str, path: str, plural: str, name: str, victim: str) -> Step:
    method = make.rng.choices(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"], [8, 3, 2, 3, 1, 0.5])[0]
    query: list[tuple[str, Value]] = []
    if method == "GET" and make.chance(0.3):
        query = [make.rng.choice([
            ("fieldSelector", f"metadata.namespace={victim}"), ("fieldSelector", f"metadata.name={name}"),
            ("watch", "1"), ("namespace", victim), ("limit", "1"), ("labelSelector", "fuzz/canary"),
            ("resourceVersion", "0"),
        ])]  # fmt: skip
        if query[0][0] == "watch":
            query += [("timeoutSeconds", "1")]
    if method in ("GET", "HEAD"):
        return Step(person, method, path, query)
    if method == "DELETE":
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"}
        return Step(person, method, path, body={"json": options} if make.chance(0.3) else None)
    obj = bodies.make(plural, victim if plural == "namespaces" else name, make.rng.choice(["", "", victim]))
    obj["metadata"]["labels"] = {"by": person}
    if method == "PATCH":
        kind = make.rng.choice([MERGE, STRATEGIC, APPLY, JSON_PATCH])
        patch: Any = obj if kind == APPLY else {"metadata": {"labels": {"by": person}}}
        if kind == JSON_PATCH:
            patch = [{"op": "add", "path": "/metadata/labels", "value": {"by": person}}]
        query = [("fieldManager", "fuzz"), ("force", "true")] if kind == APPLY else []
        return Step(person, method, path, query, {"json": patch}, {"content-type": kind})
    return Step(person, method, path, query, {"json": obj}, {"content-type": JSON})


def encoded(rng: random.Random, path: str) -> str:
    """The same path for some readers, another for others."""
    way = rng.randrange(5)
    if way == 0:
        place = rng.randrange(1, len(path))
        return f"{path[:place]}%{ord(path[place]):02x}{path[place + 1 :]}"
    if way == 1:
        return path.replace("/namespaces/", "/namespaces%2f", 1)
    if way == 2:
        return path + rng.choice(["/", "//", "/.", "?", "%20", "%00", "#x", ";x=y"])
    if way == 3:
        return path.replace("%2f", "%252f").replace("/", "//", rng.randrange(1, 4))
    return path.replace("/", "\\", 1) if rng.random() < 0.3 else "/." + path


def tokens(make: Maker) -> list[Step]:
    """Lists in pages, and their tokens in other hands."""
    plural = make.rng.choice(bodies.COMMON)
    giver = make.rng.choices([ADMIN, make.worker(), "dave"], [4, 2, 1])[0]
    thief = make.person()
    everywhere = giver == ADMIN and make.chance(0.7)
    source = collection(
        plural, "" if everywhere else make.rng.choice(EVERY_NAMESPACE) if giver == ADMIN else make.home(giver)
    )
    limit = str(make.rng.randint(1, 8))
    first = Step(giver, "GET", source, [("limit", limit)])
    if make.chance(0.2):
        first.query.append(("labelSelector", "fuzz/canary=yes"))
    token: dict[str, Any] = {"ref": "token", "of": giver, "resource": plural}
    way = make.rng.randrange(6)
    if way == 1:
        token["bend"] = {"letter": make.rng.randrange(200)}
    elif way == 2:
        changed = {"start": f"{make.rng.choice(EVERY_NAMESPACE)}/canary-a0\0", "rv": make.rng.choice([-1, 0, 1, 2**63])}
        token["bend"] = {"set": {key: changed[key] for key in make.rng.sample(list(changed), 1)}}
    elif way == 3:
        token["bend"] = {
            "set": {"namespace": make.home(thief), "user": thief, "resource": plural},
            "add": make.chance(0.5),
        }
    elif way == 4:
        count = make.rng.randint(1, 3)  # whoever knows some names knows where a page of so many ends
        first.query[0] = ("limit", str(count))
        start = f"a/canary-a{count - 1}" if make.chance(0.7) else f"b/canary-b{count - 1}"
        token = {"ref": "forged", "of": giver, "start": start, "offset": make.rng.choice([0, 0, 0, -1, 1])}
    second = Step(thief, "GET", collection(make.rng.choice([plural, plural, plural, "secrets"]), make.home(thief)))
    second.query = [("continue", token), *([("limit", limit)] if make.chance(0.5) else [])]
    if make.chance(0.1):
        second.method = "DELETE"
    second.about = f"{second.method} with {token['ref']} {'/'.join(token.get('bend', {}))}".strip()
    return [first, second]


def revisions(make: Maker) -> list[Step]:
    """Watches and lists at somebody else's revisions."""
    person, other = make.person(), make.rng.choice([ADMIN, make.worker()])
    plural = make.rng.choice(bodies.COMMON)
    at: Value = {"ref": "revision", "of": other, "offset": make.rng.choice([-50, -1, 0, 1, 10**9])}
    first = Step(other, "GET", collection(plural, "" if other == ADMIN else make.home(other)))
    query: list[tuple[str, Value]] = [("resourceVersion", at)]
    if make.chance(0.15):
        query += [("watch", "1"), ("timeoutSeconds", "1"), ("allowWatchBookmarks", "true")]
    else:
        query += [("resourceVersionMatch", make.rng.choice(["Exact", "NotOlderThan", ""]))]
    return [first, Step(person, "GET", collection(plural, make.home(person)), query)]


def nesting(make: Maker) -> list[Step]:
    """Bodies as deep as a parser may dare to go, and deeper."""
    person = make.person()
    home, name = make.home(person), make.name()
    depth = make.rng.choice([100, 250, 900, 5_000, 30_000, 100_000, 400_000])
    shape = make.rng.choice(["list", "map", "block", "pairs", "blockmap"])
    depth = min(depth, 1500) if shape == "blockmap" else min(depth, 500_000)
    how = {"shape": shape, "depth": depth, "closed": make.chance(0.6)}
    kind = make.rng.choice([YAML, YAML, APPLY, JSON, MERGE, STRATEGIC, JSON_PATCH, PROTOBUF])
    plural = make.rng.choice(("configmaps", "pods", "pytorchjobs"))
    path = collection(plural, home)
    if kind == PROTOBUF:
        recipe: dict[str, Any] = {"protobuf": {"apiVersion": "v1", "kind": "Pod", "number": make.rng.choice([1, 2, 3]),
                                               "depth": min(depth, 100_000)}}  # fmt: skip
        return [Step(person, "POST", collection("pods", home), [], recipe, {"content-type": kind})]
    if kind in (YAML, JSON):
        step = Step(person, "POST", path, headers={"content-type": kind})
    else:
        step = Step(person, "PATCH", f"{path}/{name}", [("fieldManager", "x")], headers={"content-type": kind})
    if make.chance(0.5) or shape in ("block", "blockmap"):
        step.body = {"nest": how, "before": make.rng.choice(["", "a: ", "metadata:\n "]) if shape != "list" else ""}
    else:
        obj = bodies.make(plural, name)
        obj[make.rng.choice(["metadata", "spec", "data"])] = "@deep"
        whole: Any = [{"op": "add", "path": "/metadata/annotations", "value": "@deep"}] if kind == JSON_PATCH else obj
        step.body = {"yaml" if kind == YAML else "json": whole, "deep": {"deep": how}}
    step.about = f"{kind} {shape}"
    return [step]


def counts(make: Maker) -> list[Step]:
    """Numbers that somebody may loop over, and texts that grow when they are read."""
    person = make.worker()
    home, name = make.home(person), make.name()
    if make.chance(0.25):
        plural = make.rng.choice(("pods", "pods", "jobs"))
        obj = bodies.make(plural, name)
        spec = obj["spec"] if plural == "pods" else obj["spec"]["template"]["spec"]
        spec["containers"][0]["env"] = bodies.expanding(make.rng.choice([20, 36, 64]), make.rng.choice([2, 8]))
        if plural == "jobs":
            obj["spec"]["suspend"] = False
        path = collection(plural, home)
        return [Step(person, "POST", path, [], {"json": obj}, {"content-type": JSON}, about="expanding variables")]
    plural, field = make.rng.choice(bodies.COUNTS)
    obj = bodies.make(plural, name)
    if "PS" in field:
        obj["spec"]["tfReplicaSpecs"]["PS"] = copy.deepcopy(obj["spec"]["tfReplicaSpecs"]["Worker"])
    if plural == "jobs" and make.chance(0.5):
        obj["spec"]["suspend"] = False
    number = make.rng.choices(bodies.NUMBERS, [6, 3, 2, 1, 1, 1, 1, 1, 1, 1, 1])[0]
    bodies.set_field(obj, field, number)
    about = f"{plural} {'.'.join(map(str, field))}"
    path = collection(plural, home)
    steps = [Step(person, "POST", path, [], {"json": obj}, {"content-type": JSON}, about=about)]
    if make.chance(0.2) and field == ("spec", "replicas"):
        scale = {"spec": {"replicas": number}}
        steps = [
            Step(person, "POST", path, [], {"json": bodies.make(plural, name)}, {"content-type": JSON}),
            Step(person, "PATCH", f"{path}/{name}/scale", [], {"json": scale}, {"content-type": MERGE}, about=about),
        ]
    return steps


def patches(make: Maker) -> list[Step]:
    """Every kind of patch, on what is there and on what is not."""
    person = make.rng.choice(["alice", "bob", "dave"])
    home = make.home(person)
    plural = make.rng.choice(("configmaps", "secrets", "deployments", "pods", "leases", "quotaprofiles"))
    name = make.rng.choice([make.name(), "shared", make.canary(home)]) if person == "dave" else make.name()
    path = f"{collection(plural, home)}/{name}{make.rng.choice(['', '', '', '/status', '/scale'])}"
    kind = make.rng.choice([JSON_PATCH, MERGE, STRATEGIC, APPLY])
    obj = bodies.make(plural, name)
    about = ", ".join([kind, *(bodies.disturb(make.rng, obj) for _ in range(make.rng.randint(0, 2)))])
    patch: Any = obj
    if kind == JSON_PATCH:
        patch = [_operation(make, obj) for _ in range(make.rng.randint(1, 6))]
        about = f"{kind} {' '.join(operation['op'] for operation in patch)}"
        if make.chance(0.15):  # each copy doubles what is there
            patch = [{"op": "add", "path": "/data", "value": {"a": "x" * 1000}}]
            patch += [
                {"op": "copy", "from": "/data", "path": f"/data/c{level}"} for level in range(make.rng.choice([8, 28]))
            ]
            about = f"{kind} copies of copies"
    query: list[tuple[str, Value]] = [("fieldManager", make.rng.choice(["fuzz", "", "x" * 200]))]
    query += [("force", "true")] if kind == APPLY and make.chance(0.7) else []
    return [Step(person, "PATCH", path, query, {"json": patch}, {"content-type": kind}, about=about)]


def _operation(make: Maker, obj: dict[str, Any]) -> dict[str, Any]:
    def pointer() -> str:
        place = make.rng.choice(bodies.fields(obj))
        found = "/" + "/".join(str(key).replace("~", "~0").replace("/", "~1") for key in place)
        return make.rng.choices(
            [found, "", "/-", found + "/-", found + "/99999999999", "/metadata/namespace"], [8, 1, 1, 1, 1, 1]
        )[0]

    op = make.rng.choice(["add", "remove", "replace", "move", "copy", "test", "fly"])
    found = {"op": op, "path": pointer()}
    if op in ("move", "copy"):
        found["from"] = pointer()
    return found | ({"value": make.rng.choice(bodies.ODD_VALUES)} if op in ("add", "replace", "test") else {})


SELECTORS = (
    "a=b", "a==b,c!=d", "a in (b,c)", "a notin ()", "!a", "a", "a>1", "a<99999999999999999999999", ",", "a in (",
    "()" * 2000, "!" * 5000 + "a", "a in (" + "b," * 20_000 + "c)", "fuzz/canary", "x" * 300 + "=y", "=",
    "a=b" + ",a=b" * 5000, "\x00",
    "metadata.name=canary-d0", "metadata.namespace=d", "metadata.namespace!=a", "spec.nodeName=x", "metadata.name=*",
    "metadata.name=a,metadata.name=b", "a\\,b=c", "metadata.name\\=x",
)  # fmt: skip


def selectors(make: Maker) -> list[Step]:
    person = make.person()
    query: list[tuple[str, Value]] = [(make.rng.choice(["labelSelector", "fieldSelector"]), make.rng.choice(SELECTORS))]
    if make.chance(0.3):
        query.append(
            (
                make.rng.choice(["limit", "timeoutSeconds", "resourceVersion"]),
                make.rng.choice(["-1", "1e9", "9" * 30, "x"]),
            )
        )
    plural = make.rng.choice([*bodies.COMMON, "pods"])
    place = make.rng.choice([make.home(person), "", make.victim(person)])
    method = "DELETE" if make.chance(0.1) else "GET"
    return [Step(person, method, collection(plural, place), query)]


def masks(make: Maker) -> list[Step]:
    """As if one were somebody else."""
    person = make.person()
    victim = make.victim(person)
    headers = make.rng.choice([
        {"impersonate-user": "system:admin", "impersonate-group": "system:masters"},
        {"impersonate-user": f"system:serviceaccount:{victim}:{make.rng.choice(['alice', 'bob', 'default'])}"},
        {"impersonate-group": "system:masters"}, {"impersonate-uid": "x", "impersonate-user": "kubernetes-admin"},
        {"x-remote-user": "system:admin", "x-remote-group": "system:masters"}, {"authorization": "Bearer x"},
        {"authorization": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJzeXN0ZW06YWRtaW4ifQ."},
        {"authorization": "Basic YWRtaW46YWRtaW4="}, {"x-http-method-override": "GET"},
        {"x-forwarded-for": "127.0.0.1"},
        {"x-original-url": f"/api/v1/namespaces/{victim}/secrets"}, {"host": "kubernetes.default"},
    ])  # fmt: skip
    path = make.rng.choice([
        collection("secrets", victim), collection("namespaces"), "/metrics", "/openapi/v2", "/debug/pprof/", "/logs/",
        "/", "/api", "/apis", "/version", "/readyz?verbose", "/configz",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    ])  # fmt: skip
    return [Step(person, make.rng.choice(["GET", "GET", "GET", "POST"]), path, [], None, headers)]


def garbage(make: Maker) -> list[Step]:
    """Bodies that are torn, mislabelled or no objects at all."""
    person = make.worker()
    plural = make.rng.choice(("configmaps", "pods", "pytorchjobs"))
    text = json.dumps(bodies.make(plural, make.name()))
    place = make.rng.randrange(len(text))
    recipe = make.rng.choice([
        {"text": text[:place]},
        {"text": text[:place] + make.rng.choice("\x00\"{}[],:\\é￿") + text[place:]}, {"text": ""},
        {"hex": make.rng.randbytes(40).hex()}, {"hex": (b"k8s\0" + make.rng.randbytes(60)).hex()}, {"text": "null"},
        {"text": "a: &a [" + "*a," * 3 + "]"}, {"text": "&a [x,x,x]\n" * 3}, {"text": "!!python/name:os.system ''"},
        {"text": "a: &b [&c [&d [x, x], *d, *d], *c, *c, *c]"}, {"text": "---\n" * 1000}, {"text": "%YAML 9.9\n---\na"},
        {"text": text + text}, {"text": "1" * 100_000}, {"text": '{"a":1e999999}'}, {"text": "? ? ? ? a"},
    ])  # fmt: skip
    kind = make.rng.choice(
        [JSON, YAML, PROTOBUF, APPLY, MERGE, JSON_PATCH, STRATEGIC, "text/plain", "application/cbor"]
    )
    method, path = make.rng.choice([("POST", ""), ("PUT", f"/{make.name()}"), ("PATCH", f"/{make.name()}")])
    return [Step(person, method, collection(plural, make.home(person)) + path, [], recipe, {"content-type": kind})]


def restart(make: Maker) -> list[Step]:
    return [Step(ADMIN, action="restart")]


FAMILIES: dict[Family, float] = {
    ordinary: 18, paths: 30, tokens: 10, revisions: 3, nesting: 6, counts: 5, patches: 14, selectors: 5, masks: 4,
    garbage: 8, restart: 0.15,
}  # fmt: skip
__all__ = ["ANONYMOUS", "FAMILIES", "episode", "episodes"]
