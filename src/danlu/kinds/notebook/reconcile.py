"""One Notebook → its StatefulSet, Services, Secret and status. Pure."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime

from danlu.diagnose import say, stated
from danlu.kinds import references
from danlu.kinds._served import phase, shape
from danlu.kinds._served.idle_policy import idle_policy
from danlu.kinds._served.observation import Observed, ServedOutcome
from danlu.kinds.notebook import programs
from danlu.kinds.notebook.schema import NOTEBOOK
from danlu.kinds.references import Needed
from danlu.meta import conditions
from danlu.meta.clock import human_duration, parse_time, rfc3339
from danlu.meta.kind import Object
from danlu.meta.objects import copy
from danlu.meta.said import CAUSES, Said, carried
from danlu.meta.wellknown import CONFIG_MAP, SECRET, SERVICE
from danlu.runtime.reconcile import EventNote

WORD = "Notebook"
CHECK = "ssh-check"
IDLE_TIMEOUT = "IdleTimeout"


def needs(obj: Object) -> Sequence[Needed]:
    spec = obj["spec"]
    keys = [Needed(SECRET, name) for name in _ssh(spec).get("authorized_keys") or ()] if _has_ssh(spec) else []
    return [*references.of_pod(spec["template"].get("spec") or {}), *keys]


def reconcile(obj: Object, observed: Observed, now: datetime) -> ServedOutcome:
    spec = obj["spec"]
    suspended = bool(spec.get("suspend")) or spec.get("runMode") == "paused"
    outcome = ServedOutcome()
    name = f"managed-notebook-{shape.digits(obj)}"
    if not observed.missing:
        outcome.apply = _children(obj, observed, name, 0 if suspended else 1)
    if not _has_ssh(spec):
        outcome.delete = [
            *(c for c in observed.children.get(CONFIG_MAP, ()) if c["metadata"]["name"] == name),
            *(c for c in observed.children.get(SERVICE, ()) if c["metadata"]["name"] == _ssh_service(obj)),
        ]
    stand = _phase(obj, observed, suspended)
    status = phase.base_status(obj, WORD, stand, observed, now)
    status["url"] = _url(obj, observed)
    status["tokenSecret"] = name
    if _has_ssh(spec):
        _ssh_status(obj, observed, status, now)
    else:
        conditions.remove(status["conditions"], "SSHReady")
    outcome.status = status
    outcome.events = [*phase.transitions(obj, WORD, stand)]
    _idle(obj, observed, status, stand.ready, now, outcome)
    if stand.phase == phase.SUSPENDED:
        _why_suspended(obj, status, now)
    return outcome


def _phase(obj: Object, observed: Observed, suspended: bool) -> phase.PagePhase:
    stand = phase.phase_of(WORD, observed, suspended)
    causes = carried(stand.message)
    ours = programs.type_of(obj) == "rstudio" and not _own_command(obj["spec"])
    if ours and causes and causes[0]["code"] == "DL-COMMAND":
        # The command is ours, so what it did not find is rserver.
        told = say("DL-RSTUDIO-MISSING", pod=causes[0]["params"]["pod"])
        return phase.PagePhase(stand.phase, stand.ready, stand.reason, told)
    return stand


def _own_command(spec: Object) -> bool:
    return bool(_notebook_container(spec["template"]["spec"]).get("command"))


# -- children


def _children(obj: Object, observed: Observed, name: str, replicas: int) -> list[Object]:
    spec = obj["spec"]
    kept = observed.child(SECRET, name)
    token = kept["data"]["token"] if kept else base64.b64encode(observed.fresh_token.encode()).decode()
    place = programs.place(obj)
    found = [
        shape.child(obj, NOTEBOOK, SECRET, name, {"type": "Opaque", "data": {"token": token}}),
        shape.service(obj, NOTEBOOK, place.service, "http", place.port),
    ]
    if _has_ssh(spec):
        program = {"ssh_server.py": programs.ssh_program()}
        found.append(shape.child(obj, NOTEBOOK, CONFIG_MAP, name, {"data": program}))
        kind = _ssh(spec).get("serviceType") or "ClusterIP"
        found.append(shape.service(obj, NOTEBOOK, _ssh_service(obj), "ssh", programs.SSH_PORT, kind))
    template = _template(obj, observed, name)
    return [*found, shape.stateful_set(obj, NOTEBOOK, name, place.service, replicas, template)]


def _template(obj: Object, observed: Observed, secret: str) -> Object:
    spec = obj["spec"]
    template: Object = copy(spec["template"])
    pod = template["spec"]
    container = _notebook_container(pod)
    namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
    base, home = programs.base_path(namespace, name), _home(pod, container)
    port = programs.PORTS[programs.type_of(obj)]
    shape.with_env(container, _environment(obj, observed, base, home, secret, _has_gpu(pod)))
    if not container.get("command"):
        # An image's own start script knows nothing of the path and the token; `args` of a template are added to ours.
        container["command"] = (
            programs.jupyter(base, home) if programs.type_of(obj) == "jupyter" else programs.rstudio(base)
        )
    if home and not container.get("workingDir"):
        container["workingDir"] = home
    ports = container.setdefault("ports", [])
    if not any(entry.get("containerPort") == port for entry in ports):
        ports.append({"name": "notebook-port", "containerPort": port, "protocol": "TCP"})
    probe = (
        {"httpGet": {"path": f"{base}api", "port": port}}
        if programs.type_of(obj) == "jupyter"
        else {"tcpSocket": {"port": port}}
    )
    container.setdefault("startupProbe", {**probe, "periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 600})
    container.setdefault("readinessProbe", {**probe, "periodSeconds": 10, "timeoutSeconds": 5})
    if _has_ssh(spec):
        _add_ssh(spec, pod, container, secret)
    shape.scheduled(pod, spec.get("scheduler"), template.setdefault("metadata", {}), observed)
    return template


def _environment(obj: Object, observed: Observed, base: str, home: str, secret: str, has_gpu: bool) -> list[Object]:
    own_address: Object = {"name": "NB_ADDRESS", "value": "0.0.0.0"}
    if observed.settings.shared_network:
        # All pods share the host's ports: each binds to the address that is its own.
        own_address = {"name": "NB_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    found: list[Object] = [
        own_address,
        {"name": "NB_PREFIX", "value": base.rstrip("/")},
        {"name": "ENABLE_SSH_SERVER", "value": "true" if _has_ssh(obj["spec"]) else "false"},
        {"name": "T9K_PLATFORM", "value": "notebook"},
        {"name": "T9K_NAMESPACE", "value": obj["metadata"]["namespace"]},
        {"name": "JUPYTER_TOKEN", "valueFrom": {"secretKeyRef": {"name": secret, "key": "token"}}},
        {"name": "SHELL", "value": "/bin/bash"},
    ]
    if home:
        found.append({"name": "HOME", "value": home})
    if not has_gpu:
        found.append({"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"})
    return found


def _add_ssh(spec: Object, pod: Object, container: Object, config: str) -> None:
    container["command"] = programs.with_ssh(container["command"])
    container["ports"].append({"name": "ssh", "containerPort": programs.SSH_PORT, "protocol": "TCP"})
    volumes = [{"name": "danlu-notebook", "configMap": {"name": config}}]
    mounts = [{"name": "danlu-notebook", "mountPath": programs.FOLDER, "readOnly": True}]
    for number, name in enumerate(dict.fromkeys(_ssh(spec).get("authorized_keys") or ())):
        # A folder for each: two Secrets may call their keys the same.
        volumes.append({"name": f"danlu-keys-{number}", "secret": {"secretName": name}})
        path = f"{programs.KEYS_FOLDER}/{name}"
        mounts.append({"name": f"danlu-keys-{number}", "mountPath": path, "readOnly": True})
    pod.setdefault("volumes", []).extend(volumes)
    container.setdefault("volumeMounts", []).extend(mounts)
    check = {"name": CHECK, "image": container["image"], "command": programs.ssh_check()}
    pod.setdefault("initContainers", []).append(check)


def _notebook_container(pod: Object) -> Object:
    named = [c for c in pod["containers"] if c["name"] == "notebook"]
    found: Object = (named or pod["containers"])[0]
    return found


def _home(pod: Object, container: Object) -> str:
    """Where the first claim is mounted: what is saved there outlives the pod."""
    claims = {v["name"] for v in pod.get("volumes") or () if v.get("persistentVolumeClaim")}
    for mount in container.get("volumeMounts") or ():
        if mount["name"] in claims:
            return str(mount["mountPath"])
    return ""


def _has_gpu(pod: Object) -> bool:
    limits = [(c.get("resources") or {}).get("limits") or {} for c in pod["containers"]]
    return any(name.startswith(("nvidia.com/", "amd.com/")) for limit in limits for name in limit)


def _ssh(spec: Object) -> Object:
    return spec.get("ssh") or {}


def _has_ssh(spec: Object) -> bool:
    return bool(_ssh(spec).get("enabled"))


def _ssh_service(obj: Object) -> str:
    return f"managed-notebook-ssh-{shape.digits(obj)}"


# -- status


def _url(obj: Object, observed: Observed) -> str:
    meta = obj["metadata"]
    place = programs.place(obj)
    path = programs.base_path(meta["namespace"], meta["name"])
    return shape.address(observed, place.service, place.port) + path + place.page


def _ssh_status(obj: Object, observed: Observed, status: Object, now: datetime) -> None:
    service = observed.child(SERVICE, _ssh_service(obj))
    if service is not None:
        port = service["spec"]["ports"][0]
        status["ssh"] = {
            "serviceName": service["metadata"]["name"],
            "port": port["port"],
            "clusterIp": service["spec"].get("clusterIP", ""),
            "protocol": port.get("protocol", "TCP"),
        }
        if port.get("nodePort"):
            status["ssh"]["nodePort"] = port["nodePort"]
        if observed.activity is not None and observed.activity.ssh is not None:
            status["ssh"]["lastSshClientActivity"] = rfc3339(observed.activity.ssh)
    stamp = rfc3339(now)
    if _lacks_ssh(observed.pod):
        told = say("DL-SSH-MISSING")
        conditions.set(status["conditions"], "SSHReady", "False", "NotInstalled", told, stamp)
    elif conditions.is_true(status["conditions"], "Ready"):
        conditions.set(status["conditions"], "SSHReady", "True", "Ready", stated("DL-SSH-READY"), stamp)
    else:
        told = stated("DL-SSH-WAITS", word=WORD)
        conditions.set(status["conditions"], "SSHReady", "False", "NotReady", told, stamp)


def _lacks_ssh(pod: Object | None) -> bool:
    """The check ends well in any case, and has something to say only when no server was found."""
    for container in ((pod or {}).get("status") or {}).get("initContainerStatuses") or ():
        if container["name"] == CHECK:
            ended = (container.get("state") or {}).get("terminated") or {}
            return bool(str(ended.get("message") or "").strip())
    return False


def _idle(obj: Object, observed: Observed, status: Object, ready: bool, now: datetime, outcome: ServedOutcome) -> None:
    """Only of Jupyter, which tells what its kernels and terminals do."""
    activity = observed.activity
    if not ready or programs.type_of(obj) != "jupyter":
        conditions.remove(status["conditions"], "Idle")
        return
    rules = idle_policy(observed.namespace, observed.settings)
    outcome.requeue_after = rules.scan_s
    if activity is None:
        told = stated("DL-IDLE-UNKNOWN", word=WORD)
        conditions.set(status["conditions"], "Idle", "Unknown", "NoAnswer", told, rfc3339(now))
        return
    # What computed in silence is remembered from earlier looks; nothing else tells of it afterwards.
    seen = (obj.get("status") or {}).get("lastActivity")
    last = max(filter(None, (activity.last, parse_time(seen) if seen else None)), default=None)
    quiet = (now - last).total_seconds() if last else 0.0
    idle = not activity.busy and quiet >= rules.idle_after_s
    if last:
        status["lastActivity"] = rfc3339(last)
    problem, other = (*rules.problems, "", "")[:2]
    text = stated("DL-IDLE" if idle else "DL-ACTIVE", word=WORD, problem=problem, other=other)
    reason = "Idle" if idle else "Active"
    if idle and rules.suspend_after_s is not None and quiet >= rules.idle_after_s + rules.suspend_after_s:
        outcome.suspend = True
        reason = IDLE_TIMEOUT
        text = _farewell(obj, quiet)
        outcome.events.append(EventNote("Normal", IDLE_TIMEOUT, text))
    conditions.set(
        status["conditions"], "Idle", "True" if idle else "False", reason, text, rfc3339(now),
        lastProbeTime=rfc3339(activity.probed),
    )  # fmt: skip


def _farewell(obj: Object, quiet: float) -> Said:
    name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
    resume = f'kubectl patch nb {name} -n {namespace} --type merge -p \'{{"spec":{{"suspend":false}}}}\''
    return say("DL-IDLE-SUSPENDED", word=WORD, unused=human_duration(quiet), resume=resume)


def _why_suspended(obj: Object, status: Object, now: datetime) -> None:
    """Whoever comes back to it reads that nobody stopped it by hand."""
    before = (obj.get("status") or {}).get("conditions")
    for type in ("Suspended", "Idle"):
        told = conditions.get(before, type) or {}
        if told.get("reason") == IDLE_TIMEOUT and told.get("status") == "True":
            text = Said(str(told.get("message")), told.get(CAUSES) or ())
            conditions.set(status["conditions"], "Suspended", "True", IDLE_TIMEOUT, text, rfc3339(now))
            return
