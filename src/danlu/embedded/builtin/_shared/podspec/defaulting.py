"""The values Kubernetes fills into a pod spec, in place. Idempotent."""

from __future__ import annotations

import re
from typing import Any

from danlu.embedded.builtin._shared.podspec.totals import container_requests
from danlu.embedded.builtin._shared.quantities import canonicalise, canonicalise_field
from danlu.meta.kind import Object
from danlu.meta.textcache import cached

FILE_MODE = 0o644
CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")

_IMAGE = re.compile(
    r"(?P<name>(?:(?:[a-zA-Z0-9.-]+|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?[a-z0-9]+(?:[._-]+[a-z0-9]+)*"
    r"(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*)"
    r"(?::(?P<tag>[\w][\w.-]{0,127}))?(?:@(?P<digest>[A-Za-z][\w.+-]*:[0-9a-fA-F]{32,}))?",
    re.ASCII,
)

# Every other source is stored as it was sent.
_MODE_SOURCES = ("secret", "configMap", "downwardAPI", "projected")


def default_pod(pod: Object) -> None:
    """A Pod; more than its spec's defaults: some apply to pods and not to templates, so that templates stay stable."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        spec = pod["spec"] = {}
    default_pod_spec(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    for containers in ("containers", "initContainers"):
        for container in spec.get(containers) or ():
            resources = container["resources"]
            limits = resources.get("limits")
            if limits is not None:
                requests = resources.get("requests")
                if requests is None:
                    resources["requests"] = dict(limits)
                else:
                    for name, value in limits.items():
                        requests.setdefault(name, value)
            if spec.get("hostNetwork"):
                for port in container.get("ports") or ():
                    if not port.get("hostPort") and port.get("containerPort"):
                        port["hostPort"] = port["containerPort"]
    if spec.get("resources"):
        _default_pod_requests(pod, spec["resources"])
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True


def _default_pod_requests(pod: Object, resources: Object) -> None:
    """What the pod as a whole requests, where it only says its limits: its containers' sum, or else the limits."""
    limits = resources.get("limits")
    if not limits:
        return
    requests = dict(resources.get("requests") or {})
    for name, amount in container_requests(pod["spec"]).items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, str(amount))
    for name, value in limits.items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            requests.setdefault(name, value)
    if requests:
        resources["requests"] = requests


def default_pod_template(template: Object) -> None:
    """A template; `metadata` is always there, as Kubernetes answers it."""
    if not isinstance(template.get("metadata"), dict):
        template["metadata"] = {}
    spec = template.get("spec")
    if not isinstance(spec, dict):
        spec = template["spec"] = {}
    default_pod_spec(spec)


def default_pod_spec(spec: Object) -> None:
    if not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirst"
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    # `serviceAccount` is the old name of the field and always shows the same value.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    canonicalise(spec.get("overhead"))
    _default_resources(spec.get("resources"))
    for name in CONTAINER_LISTS:
        for container in spec.get(name) or ():
            _default_container(container)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def default_claim_spec(spec: Object) -> None:
    """A PersistentVolumeClaim's spec, also inside an ephemeral volume or a StatefulSet."""
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"
    if spec.get("resources") is None:
        spec["resources"] = {}
    _default_resources(spec["resources"])
    for field in ("dataSource", "dataSourceRef"):
        if spec.get(field) is not None:
            spec[field].setdefault("apiGroup", None)


def _default_resources(resources: Object | None) -> None:
    if resources:
        canonicalise(resources.get("limits"))
        canonicalise(resources.get("requests"))


def _default_container(container: Object) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image") or "")
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    resources = container.get("resources")
    if resources is None:
        container["resources"] = {}
    elif resources:
        _default_resources(resources)
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env") or ():
        source = variable.get("valueFrom")
        if source:
            _default_reference(source)
            file = source.get("fileKeyRef")
            if file is not None:
                file.setdefault("optional", False)
    for name in PROBES:
        probe = container.get(name)
        if probe is not None:
            _default_probe(probe)
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict) and hook.get("httpGet") is not None:
            _default_http(hook["httpGet"])
    security = container.get("securityContext")
    if security and security.get("procMount") == "":
        del security["procMount"]


@cached(1024)
def pull_policy(image: str) -> str:
    """Always for `:latest`, said or implied; a digest alone implies no tag."""
    match = _IMAGE.fullmatch(image)
    if match is None:
        return "IfNotPresent"
    tag = match["tag"] or ("" if match["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def _default_probe(probe: Object) -> None:
    if not probe.get("timeoutSeconds"):
        probe["timeoutSeconds"] = 1
    if not probe.get("periodSeconds"):
        probe["periodSeconds"] = 10
    if not probe.get("successThreshold"):
        probe["successThreshold"] = 1
    if not probe.get("failureThreshold"):
        probe["failureThreshold"] = 3
    if probe.get("httpGet") is not None:
        _default_http(probe["httpGet"])
    grpc = probe.get("grpc")
    if grpc is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _default_http(get: Object) -> None:
    if not get.get("path"):
        get["path"] = "/"
    if not get.get("scheme"):
        get["scheme"] = "HTTP"


def _default_reference(source: Object) -> None:
    """`fieldRef` and `resourceFieldRef` of an environment variable or of a downward API file."""
    field = source.get("fieldRef")
    if field is not None and not field.get("apiVersion"):
        field["apiVersion"] = "v1"
    resource = source.get("resourceFieldRef")
    if resource is not None:
        if resource.get("divisor") is None:
            resource["divisor"] = "0"
        else:
            canonicalise_field(resource, "divisor")


def _default_volume(volume: Object) -> None:
    if not any(value is not None for name, value in volume.items() if name != "name"):
        volume["emptyDir"] = {}
        return
    for name in _MODE_SOURCES:
        source = volume.get(name)
        if source is not None and source.get("defaultMode") is None:
            source["defaultMode"] = FILE_MODE
    host_path = volume.get("hostPath")
    if host_path is not None and host_path.get("type") is None:
        host_path["type"] = ""
    empty = volume.get("emptyDir")
    if empty:
        canonicalise_field(empty, "sizeLimit")
    if volume.get("downwardAPI") is not None:
        for file in volume["downwardAPI"].get("items") or ():
            _default_reference(file)
    if volume.get("projected") is not None:
        _default_projected(volume["projected"])
    image = volume.get("image")
    if image is not None and not image.get("pullPolicy"):
        image["pullPolicy"] = pull_policy(image.get("reference") or "")
    ephemeral = volume.get("ephemeral")
    template: Any = ephemeral and ephemeral.get("volumeClaimTemplate")
    if template:
        template.setdefault("metadata", {})
        default_claim_spec(template.setdefault("spec", {}))
    _default_network_disks(volume)


def _default_projected(projected: Object) -> None:
    for source in projected.get("sources") or ():
        token = source.get("serviceAccountToken")
        if token is not None and token.get("expirationSeconds") is None:
            token["expirationSeconds"] = 3600
        downward = source.get("downwardAPI")
        if downward is not None:
            for file in downward.get("items") or ():
                _default_reference(file)


def _default_network_disks(volume: Object) -> None:
    """Sources no embedded node can mount, and which a manifest may still carry."""
    iscsi = volume.get("iscsi")
    if iscsi is not None and not iscsi.get("iscsiInterface"):
        iscsi["iscsiInterface"] = "default"
    rbd = volume.get("rbd")
    if rbd is not None:
        for name, value in (("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")):
            if not rbd.get(name):
                rbd[name] = value
    scale_io = volume.get("scaleIO")
    if scale_io is not None:
        for name, value in (("storageMode", "ThinProvisioned"), ("fsType", "xfs")):
            if not scale_io.get(name):
                scale_io[name] = value
    azure = volume.get("azureDisk")
    if azure is not None:
        for name, default in (
            ("cachingMode", "ReadWrite"),
            ("fsType", "ext4"),
            ("readOnly", False),
            ("kind", "Shared"),
        ):
            if azure.get(name) is None:
                azure[name] = default
