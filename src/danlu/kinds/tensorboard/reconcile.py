"""One TensorBoard → its StatefulSet, Service and status. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from danlu.diagnose import say
from danlu.kinds._served import phase, shape
from danlu.kinds._served.observation import Observed, ServedOutcome
from danlu.kinds.references import Needed
from danlu.kinds.tensorboard import logdir
from danlu.kinds.tensorboard.schema import TENSORBOARD
from danlu.kinds.webapp import AppPlace, app_path
from danlu.meta.kind import Object
from danlu.meta.wellknown import PERSISTENT_VOLUME_CLAIM

WORD = "TensorBoard"
PORT = 6006
DEFAULT_IMAGE = "tensorflow/tensorflow:2.14.0"


def needs(obj: Object) -> Sequence[Needed]:
    return [
        Needed(PERSISTENT_VOLUME_CLAIM, claim) for claim in dict.fromkeys(c for c, _ in logdir.of(obj["spec"]).claims)
    ]


def reconcile(obj: Object, observed: Observed, now: datetime) -> ServedOutcome:
    spec = obj["spec"]
    suspended = bool(spec.get("suspend")) or spec.get("runMode") == "paused"
    found = logdir.of(spec)
    refused = ""
    if found.unsupported:
        refused = say("DL-LOGS-UNSUPPORTED", logs=", ".join(found.unsupported))
    outcome = ServedOutcome()
    if not refused and not observed.missing:
        service = place(obj).service
        template = _template(obj, found, observed)
        outcome.apply = [
            shape.service(obj, TENSORBOARD, service, "http", PORT),
            shape.stateful_set(
                obj, TENSORBOARD, f"managed-tensorboard-{shape.digits(obj)}", service, 0 if suspended else 1, template
            ),
        ]
    stand = phase.phase_of(WORD, observed, suspended, refused)
    outcome.status = phase.base_status(obj, WORD, stand, observed, now)
    address = shape.address(observed, place(obj).service, PORT)
    outcome.status["url"] = address + base_path(obj)
    outcome.events = [*phase.transitions(obj, WORD, stand)]
    return outcome


def base_path(obj: Object) -> str:
    return app_path(TENSORBOARD, obj["metadata"]["namespace"], obj["metadata"]["name"])


def place(obj: Object) -> AppPlace:
    return AppPlace(f"managed-tensorboard-http-{shape.digits(obj)}", PORT)


def _template(obj: Object, found: logdir.Logs, observed: Observed) -> Object:
    spec = obj["spec"]
    claims = [*dict.fromkeys(claim for claim, _ in found.claims)]
    volume = {claim: f"logs-{number}" for number, claim in enumerate(claims)}
    address: Object = {"name": "TB_ADDRESS", "value": "0.0.0.0"}
    if observed.settings.shared_network:
        address = {"name": "TB_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    probe = {"httpGet": {"path": f"{base_path(obj)}data/environment", "port": PORT}}
    container: Object = {
        "name": "tensorboard",
        "image": spec.get("image") or DEFAULT_IMAGE,
        "command": ["tensorboard"],
        "args": [
            *logdir.arguments(found),
            "--host=$(TB_ADDRESS)",
            f"--port={PORT}",
            f"--path_prefix={base_path(obj).rstrip('/')}",
            "--reload_interval=5",
            # Logs that a job is still writing, with several event files in one folder.
            "--reload_multifile=true",
        ],
        "env": [address],
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "startupProbe": {**probe, "periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 600},
        "readinessProbe": {**probe, "periodSeconds": 10, "timeoutSeconds": 5},
        "volumeMounts": [
            {"name": name, "mountPath": f"{logdir.MOUNT}/{claim}", "readOnly": True} for claim, name in volume.items()
        ],
    }
    if spec.get("resources"):
        container["resources"] = spec["resources"]
    pod: Object = {
        "containers": [container],
        "volumes": [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for claim, name in volume.items()],
    }
    meta: Object = {}
    shape.scheduled(pod, spec.get("scheduler"), meta, observed)
    return {"metadata": meta, "spec": pod}
