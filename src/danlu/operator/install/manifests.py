"""The objects of an installation, in the order in which they have to be made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from danlu import __version__
from danlu.kinds import platformroles
from danlu.kinds.crd import definition
from danlu.meta.kind import Object
from danlu.operator.install import addons
from danlu.operator.install.options import InstallOptions

OPERATOR, CONSOLE = platformroles.OPERATOR, "danlu-console"
OPERATOR_PORT = 8080  # /healthz, /readyz, /metrics
CONSOLE_PORT, APPS_PORT = 8080, 8081  # pages and API; notebooks and TensorBoards, on an origin of their own
SESSION_KEY = "session-key"
IDENTITY = "danlu-console-oidc"  # a Secret with the files that `danlu console --oidc-folder` reads
IDENTITY_FOLDER = "/etc/danlu/oidc"
ACCOUNT = 65532  # the user of the image: no account of any node
UNPRIVILEGED: Object = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


@dataclass(frozen=True, slots=True)
class InstallPart:
    """One object, and what it belongs to: the folder in deploy/, the switch in the chart's values."""

    component: str
    object: Object


def parts(options: InstallOptions) -> list[InstallPart]:
    found = [InstallPart("namespace", _namespace(options))]
    found += [InstallPart("crds", definition(kind)) for kind in options.kinds]
    found += [InstallPart("rbac", one) for one in roles(options)]
    found += [InstallPart("operator", one) for one in _operator(options)]
    if options.console:
        found += [InstallPart("console", one) for one in _console(options)]
    if options.network_policies:
        found += [InstallPart("network", one) for one in _network_policies(options)]
    if "nvidia" in options.addons:
        found += [InstallPart("addons/nvidia", one) for one in addons.device_plugin()]
    if "dcgm" in options.addons:
        found += [InstallPart("addons/dcgm", one) for one in addons.dcgm_exporter()]
    return found


def labels(component: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "danlu",
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/part-of": "danlu",
        "app.kubernetes.io/version": __version__,
    }


def selector(component: str) -> dict[str, str]:
    """What never changes: a Deployment's selector cannot."""
    return {"app.kubernetes.io/name": "danlu", "app.kubernetes.io/component": component}


def _namespace(options: InstallOptions) -> Object:
    # Nothing here needs more than the strictest profile; add-ons that do live in kube-system.
    strict = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": options.namespace, "labels": {**labels("namespace"), **strict}},
    }


def roles(options: InstallOptions) -> list[Object]:
    """What the operator's controllers do, and what people may do with the kinds."""
    return [platformroles.operator_role(options.kinds), *platformroles.user_roles(options.kinds)]


def _operator(options: InstallOptions) -> Iterator[Object]:
    yield _account(OPERATOR, "operator", options)
    yield _binding("ClusterRole", OPERATOR, "operator", options)
    yield _head(platformroles.leader_role(options.namespace), "operator")
    yield _binding("Role", OPERATOR, "operator", options)
    yield _service(OPERATOR, "operator", options, [{"name": "metrics", "port": OPERATOR_PORT, "targetPort": "metrics"}])
    container = _container(
        OPERATOR,
        options,
        operator_arguments(options),
        ports={"metrics": OPERATOR_PORT},
        probes="metrics",
        resources=options.operator_resources,
    )
    container["env"].append({"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}})
    yield _deployment(OPERATOR, "operator", options, container, options.replicas)


def operator_arguments(options: InstallOptions) -> list[str]:
    return [
        "operator",
        f"--gang={options.gang}",
        f"--kinds={options.kind_names}",
        f"--console-url={options.console_url}",
        f"--listen=0.0.0.0:{OPERATOR_PORT}",
        f"--log-format={options.log_format}",
    ]


def _console(options: InstallOptions) -> Iterator[Object]:
    yield _account(CONSOLE, "console", options)
    ports = [
        {"name": "http", "port": 80, "targetPort": "http"},
        {"name": "apps", "port": APPS_PORT, "targetPort": "apps"},
    ]
    yield _service(CONSOLE, "console", options, ports)
    container = _container(
        CONSOLE,
        options,
        console_arguments(options),
        ports={"http": CONSOLE_PORT, "apps": APPS_PORT},
        probes="http",
        resources=options.console_resources,
    )
    # Without the Secret, which `danlu install` makes, people sign in again after each start of the console.
    key = {"name": CONSOLE, "key": SESSION_KEY, "optional": True}
    container["env"].append({"name": "DANLU_IMAGE", "value": options.image})
    container["env"].append({"name": "DANLU_SESSION_KEY", "valueFrom": {"secretKeyRef": key}})
    container["volumeMounts"].append({"name": "oidc", "mountPath": IDENTITY_FOLDER, "readOnly": True})
    deployment = _deployment(CONSOLE, "console", options, container, 1)
    secret = {"secretName": IDENTITY, "optional": True}
    deployment["spec"]["template"]["spec"]["volumes"].append({"name": "oidc", "secret": secret})
    yield deployment


def console_arguments(options: InstallOptions) -> list[str]:
    return [
        *("console", "--host=0.0.0.0", f"--port={CONSOLE_PORT}", f"--apps-port={APPS_PORT}"),
        *(f"--url={options.console_url}", f"--apps-url={options.apps_url}", f"--oidc-folder={IDENTITY_FOLDER}"),
        f"--log-format={options.log_format}",
        *options.console_arguments,
    ]


def session_key(options: InstallOptions, key: str) -> InstallPart:
    """What seals the console's cookies; `key` is base64, as in every Secret."""
    return _secret(CONSOLE, options, {SESSION_KEY: key})


def identity_provider(options: InstallOptions, data: dict[str, str]) -> InstallPart:
    """With whom people sign in; the values are base64."""
    return _secret(IDENTITY, options, data)


def _secret(name: str, options: InstallOptions, data: dict[str, str]) -> InstallPart:
    head = {"name": name, "namespace": options.namespace, "labels": labels("console")}
    return InstallPart("console", {"apiVersion": "v1", "kind": "Secret", "metadata": head, "data": data})


def _network_policies(options: InstallOptions) -> Iterator[Object]:
    """Who may come in. Where the pods themselves go is not limited: an API server's address is not known here."""
    for component, ports in (("operator", ["metrics"]), ("console", ["http", "apps"])):
        if component == "console" and not options.console:
            continue
        yield {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {
                "name": f"danlu-{component}",
                "namespace": options.namespace,
                "labels": labels(component),
            },
            "spec": {
                "podSelector": {"matchLabels": selector(component)},
                "policyTypes": ["Ingress"],
                "ingress": [{"ports": [{"port": port, "protocol": "TCP"} for port in ports]}],
            },
        }


# ---------------------------------------------------------------- the shapes


def _head(obj: Object, component: str) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "labels": labels(component)}}


def _account(name: str, component: str, options: InstallOptions) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": options.namespace, "labels": labels(component)},
    }


def _binding(kind: str, name: str, component: str, options: InstallOptions) -> Object:
    """`kind`: what is bound to the account of that name is called the same."""
    wide = kind == "ClusterRole"
    meta: Object = {"name": name, "labels": labels(component)}
    if not wide:
        meta = {"name": name, "namespace": options.namespace, "labels": labels(component)}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": f"{kind}Binding",
        "metadata": meta,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": options.namespace}],
    }


def _service(name: str, component: str, options: InstallOptions, ports: list[Object]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": options.namespace, "labels": labels(component)},
        "spec": {"selector": selector(component), "ports": [{**port, "protocol": "TCP"} for port in ports]},
    }


def _container(
    name: str, options: InstallOptions, arguments: list[str], *, ports: dict[str, int], probes: str, resources: Object
) -> Object:
    return {
        "name": name.removeprefix("danlu-"),
        "image": options.image,
        "imagePullPolicy": options.pull_policy,
        "args": arguments,
        "env": [{"name": "HOME", "value": "/tmp"}],
        "ports": [{"name": port, "containerPort": number, "protocol": "TCP"} for port, number in ports.items()],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": probes}, "periodSeconds": 10, "failureThreshold": 6},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": probes}, "periodSeconds": 2},
        "resources": resources,
        "securityContext": UNPRIVILEGED,
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }


def _deployment(name: str, component: str, options: InstallOptions, container: Object, replicas: int) -> Object:
    pod: Object = {
        "serviceAccountName": name,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": ACCOUNT,
            "runAsGroup": ACCOUNT,
            "fsGroup": ACCOUNT,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": 30,
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    for field, value in (
        ("imagePullSecrets", options.pull_secrets),
        ("nodeSelector", options.node_selector),
        ("tolerations", options.tolerations),
    ):
        if value:
            pod[field] = value
    if component == "operator":  # the second is of use only where it outlives the first
        spread = {"labelSelector": {"matchLabels": selector(component)}, "topologyKey": "kubernetes.io/hostname"}
        pod["affinity"] = {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": spread}]
            }
        }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": options.namespace, "labels": labels(component)},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": selector(component)},
            "template": {"metadata": {"labels": labels(component)}, "spec": pod},
        },
    }
