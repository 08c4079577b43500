"""Add-ons for nodes with NVIDIA GPUs: what tells Kubernetes of them, and what measures them.

They live in kube-system, where NVIDIA's own manifests put the plugin: both reach into the node, which the profile of
Danlu's namespace does not allow.
"""

from __future__ import annotations

from danlu.meta.kind import Object

NAMESPACE = "kube-system"
DEVICE_PLUGIN = "nvidia-device-plugin-daemonset"
# Both are those of NVIDIA's GPU operator v26.7.1, the newest that could be found on 2026-11-15: the plugin's release is
# of 2026-09-22 (github.com/NVIDIA/k8s-device-plugin, pull 2057), the exporter's tag its chart's default of 2026-09-26.
DEVICE_PLUGIN_IMAGE = "nvcr.io/nvidia/k8s-device-plugin:v0.20.1"
DCGM = "dcgm-exporter"
DCGM_IMAGE = "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.1-4.8.4-distroless"
DCGM_PORT = 9400
GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
WITHOUT_PRIVILEGE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def device_plugin() -> list[Object]:
    """Makes `nvidia.com/gpu` a resource. On nodes without a driver it waits and does nothing."""
    container: Object = {
        "name": "nvidia-device-plugin-ctr",
        "image": DEVICE_PLUGIN_IMAGE,
        "env": [{"name": "FAIL_ON_INIT_ERROR", "value": "false"}],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}},
        "securityContext": WITHOUT_PRIVILEGE,
        "volumeMounts": [{"name": "device-plugins", "mountPath": "/var/lib/kubelet/device-plugins"}],
    }
    return [_daemon(DEVICE_PLUGIN, container, "device-plugins", "/var/lib/kubelet/device-plugins")]


def dcgm_exporter() -> list[Object]:
    """Use, memory and temperature of each GPU for Prometheus, with the pod that has it. It takes no GPU itself."""
    container: Object = {
        "name": DCGM,
        "image": DCGM_IMAGE,
        "env": [
            {"name": "DCGM_EXPORTER_LISTEN", "value": f":{DCGM_PORT}"},
            {"name": "DCGM_EXPORTER_KUBERNETES", "value": "true"},
        ],
        "ports": [{"name": "metrics", "containerPort": DCGM_PORT, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}},
        # Profiling counters belong to the node's administrator.
        "securityContext": {"runAsUser": 0, "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}},
        "volumeMounts": [{"name": "pod-resources", "mountPath": "/var/lib/kubelet/pod-resources", "readOnly": True}],
    }
    daemon = _daemon(DCGM, container, "pod-resources", "/var/lib/kubelet/pod-resources")
    # Where gpu-feature-discovery or the GPU operator labels the nodes; without a GPU it would only crash.
    daemon["spec"]["template"]["spec"]["nodeSelector"] = {"nvidia.com/gpu.present": "true"}
    service: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": DCGM, "namespace": NAMESPACE, "labels": _labels(DCGM)},
        "spec": {
            "selector": _selector(DCGM),
            "ports": [{"name": "metrics", "port": DCGM_PORT, "targetPort": "metrics", "protocol": "TCP"}],
        },
    }
    return [service, daemon]


def _selector(name: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": name}


def _labels(name: str) -> dict[str, str]:
    return {**_selector(name), "app.kubernetes.io/part-of": "danlu", "app.kubernetes.io/component": "addon"}


def _daemon(name: str, container: Object, volume: str, path: str) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": _labels(name)},
        "spec": {
            "selector": {"matchLabels": _selector(name)},
            "template": {
                "metadata": {"labels": _labels(name)},
                "spec": {
                    "priorityClassName": "system-node-critical",
                    "tolerations": [GPU_TAINT],
                    "containers": [container],
                    "volumes": [{"name": volume, "hostPath": {"path": path, "type": "Directory"}}],
                },
            },
        },
    }
