"""The files that the cluster's programs read."""

from __future__ import annotations

import base64
import json
import secrets
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.images import binds
from tests.cluster.place import ADDRESS, API, NODE, PAUSE, PODS, REGISTRY, Place

GATES = {"GenericWorkload": True, "GangScheduling": True}  # kube-scheduler's own gangs, off by default in 1.36
DNS_NAME = "cluster.local"
PROVISIONER = "rancher.io/local-path"
MOST_CPU = "250m"  # that a container of an example is counted with
EXAMPLES = ("default", "kubeflow", "model-training-basics", "demo-zh")  # namespaces where the examples run


def write_before(place: Place, path: str) -> None:
    """All that can be written before the API server has made its certificate."""
    folder = place.folder
    users = {"admin": "system:masters", f"system:node:{NODE}": "system:nodes"}
    tokens = {user: secrets.token_hex(16) for user in users}
    lines = [f'{tokens[user]},{user},{user},"{group}"' for user, group in users.items()]
    _private(folder / "tokens.csv", "\n".join(lines) + "\n")
    _private(folder / "tokens.json", json.dumps(tokens))
    key = folder / "sa.key"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    subprocess.run(
        ["openssl", "rsa", "-in", key, "-pubout", "-out", folder / "sa.pub"], check=True, capture_output=True
    )
    _write_containerd(place, path)
    _write_node(place)
    (folder / "resolv.conf").write_text(f"nameserver {ADDRESS}\n")
    (folder / "Corefile").write_text(
        ".:53 {\n"
        f"  bind {ADDRESS}\n  errors\n"
        f"  kubernetes {DNS_NAME} in-addr.arpa {{\n"
        f"    kubeconfig {place.kubeconfig}\n    pods insecure\n    ttl 1\n  }}\n"
        "}\n"
    )
    _yaml(
        folder / "scheduler.yaml",
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(place.kubeconfig), "qps": 2000, "burst": 4000},
        },
    )  # fmt: skip
    # One folder for all volumes, so that claims may be ReadWriteMany, as on a cluster with a shared file system.
    (folder / "volumes").mkdir()
    (folder / "volumes").chmod(0o777)
    (folder / "storage.json").write_text(
        json.dumps({"nodePathMap": [], "sharedFileSystemPath": str(folder / "volumes")})
    )
    helper = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "helper-pod"},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": NODE},
            "containers": [{"name": "helper-pod", "image": "busybox", "imagePullPolicy": "IfNotPresent"}],
        },
    }  # fmt: skip
    _yaml(folder / "helperPod.yaml", helper)


def write_kubeconfigs(place: Place) -> None:
    """For the admin and the kubelet, once the API server's certificate is there."""
    tokens = json.loads((place.folder / "tokens.json").read_text())
    authority = base64.b64encode((place.folder / "certs/apiserver.crt").read_bytes()).decode()
    cluster = {"server": API, "certificate-authority-data": authority}
    for file, user in ((place.kubeconfig, "admin"), (place.folder / "kubelet.kubeconfig", f"system:node:{NODE}")):
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "real",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": tokens[user]}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": user}}],
        }  # fmt: skip
        _private(file, yaml.safe_dump(config))


def storage() -> dict[str, Any]:
    """The default StorageClass, and what the provisioner's pods do on the node."""
    storage_class = {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": PROVISIONER,
        "metadata": {"name": "local-path", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "volumeBindingMode": "Immediate", "reclaimPolicy": "Delete",
    }  # fmt: skip
    scripts = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "local-path-config", "namespace": "kube-system"},
        "data": {"setup": 'mkdir -m 0777 -p "$VOL_DIR"', "teardown": 'rm -rf "$VOL_DIR"'},
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "List", "items": [storage_class, scripts]}


def small_machine() -> dict[str, Any]:
    """Examples ask for more cores than a small machine has; a kubelet cannot promise them, so less is counted.

    Their manifests stay as they are. Limits stay too: a container gets what the machine has to give.
    """
    name = {"name": "small-machine"}
    asks = 'has(c.resources) && has(c.resources.requests) && "cpu" in c.resources.requests'
    much = f'quantity(c.resources.requests["cpu"]).isGreaterThan(quantity("{MOST_CPU}"))'
    less = f'Object.spec.containers.resources{{requests: {{"cpu": "{MOST_CPU}"}}}}'
    mended = f"Object.spec.containers{{name: c.name, resources: {less}}}"
    chosen = f"object.spec.containers.filter(c, {asks} && {much})"
    expression = f"Object{{spec: Object.spec{{containers: {chosen}.map(c, {mended})}}}}"
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": name,
        "spec": {
            "matchConstraints": {"resourceRules": [pods]}, "failurePolicy": "Fail", "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
        },
    }  # fmt: skip
    where = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [*EXAMPLES]}
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding", "metadata": name,
        "spec": {"policyName": name["name"], "matchResources": {"namespaceSelector": {"matchExpressions": [where]}}},
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "List", "items": [policy, binding]}


def _write_containerd(place: Place, path: str) -> None:
    folder = place.folder
    (folder / "hosts/_default").mkdir(parents=True)
    (folder / "hosts/_default/hosts.toml").write_text(
        f'server = "{REGISTRY}"\n[host."{REGISTRY}"]\ncapabilities = ["pull", "resolve"]\n'
    )
    environment = {"PATH": path}
    shown = subprocess.run(["ctr", "oci", "spec"], check=True, capture_output=True, env=environment)
    spec = json.loads(shown.stdout)
    for target, source in binds().items():
        options = ["rbind", "ro", "nosuid", "nodev"]
        spec["mounts"].append({"destination": target, "type": "bind", "source": source, "options": options})
    (folder / "spec.json").write_text(json.dumps(spec))
    (folder / "cni").mkdir()
    plugins = [
        {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False, "hairpinMode": True,
         "ipam": {"type": "host-local", "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "0.0.0.0/0"}],
                  "dataDir": str(folder / "addresses")}},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]  # fmt: skip
    network = {"cniVersion": "1.0.0", "name": place.name, "plugins": plugins}
    (folder / "cni/10-bridge.conflist").write_text(json.dumps(network))
    images, runtime = 'plugins."io.containerd.cri.v1.images"', 'plugins."io.containerd.cri.v1.runtime"'
    (folder / "containerd.toml").write_text(f"""\
version = 3
root = "{folder}/containerd"
state = "{folder}/containerd-state"
disabled_plugins = ["io.containerd.nri.v1.nri"]
[grpc]
address = "{place.containerd_socket}"
[{images}]
snapshotter = "overlayfs"
[{images}.pinned_images]
sandbox = "{PAUSE}"
[{images}.registry]
config_path = "{folder}/hosts"
[{runtime}]
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[{runtime}.cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "{folder}/cni"
[{runtime}.containerd]
default_runtime_name = "runc"
[{runtime}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
base_runtime_spec = "{folder}/spec.json"
[{runtime}.containerd.runtimes.runc.options]
Root = "{folder}/runc"
SystemdCgroup = false
""")


def _write_node(place: Place) -> None:
    folder = place.folder
    _yaml(
        folder / "kubelet.yaml",
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "address": ADDRESS, "healthzBindAddress": "127.0.0.1",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": f"unix://{place.containerd_socket}",
            "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{place.name}", "failCgroupV1": False, "failSwapOn": False,
            "clusterDNS": [ADDRESS], "clusterDomain": DNS_NAME, "resolvConf": str(folder / "resolv.conf"),
            "podLogsDir": str(folder / "pod-logs"), "volumePluginDir": str(folder / "volume-plugins"),
            "staticPodPath": "", "serializeImagePulls": False, "nodeStatusUpdateFrequency": "2s",
            # The machine's disk and memory are other people's too: only what would hurt pods counts, while it does.
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "500Mi", "imagefs.available": "500Mi"},
            "evictionPressureTransitionPeriod": "5s",
            "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
            "syncFrequency": "10s", "configMapAndSecretChangeDetectionStrategy": "Watch",
            "kubeAPIQPS": 200, "kubeAPIBurst": 400, "registryPullQPS": 0, "eventRecordQPS": 0,
            "shutdownGracePeriod": "0s", "localStorageCapacityIsolation": True,
        },
    )  # fmt: skip
    _yaml(
        folder / "kube-proxy.yaml",
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "iptables",
            "clientConnection": {"kubeconfig": str(place.kubeconfig)}, "clusterCIDR": PODS,
            "hostnameOverride": NODE, "bindAddress": ADDRESS, "healthzBindAddress": "127.0.0.1:10256",
            "iptables": {"minSyncPeriod": "0s", "syncPeriod": "30s"},
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        },
    )  # fmt: skip


def _yaml(file: Path, value: Any) -> None:
    file.write_text(yaml.safe_dump(value))


def _private(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text)
