"""What users own besides kubectl: the official Python client, and Helm."""
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.running import ROOT, Danlu

kubernetes = pytest.importorskip("kubernetes", reason="the official Python client is not installed")
from kubernetes import client, config, dynamic, utils, watch  # noqa: E402
from kubernetes.client.exceptions import ApiException  # noqa: E402
from kubernetes.stream import portforward, stream  # noqa: E402

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu]) -> Danlu:
    return make_danlu()


@pytest.fixture(scope="module")
def api(danlu: Danlu) -> Iterator[Any]:
    with config.new_client_from_config(str(danlu.kubeconfig)) as found:
        yield found


@pytest.fixture(scope="module")
def core(api: Any) -> Any:
    return client.CoreV1Api(api)


def simple_pod(name: str, *command: str, **more: Any) -> Any:
    container = client.V1Container(name="c", image="python", command=list(command), **more)
    spec = client.V1PodSpec(containers=[container], restart_policy="Never", termination_grace_period_seconds=1)
    return client.V1Pod(metadata=client.V1ObjectMeta(name=name, labels={"made-by": "client"}), spec=spec)


def wait_for(core: Any, name: str, phase: str) -> Any:
    """By watching, as programs do."""
    for event in watch.Watch().stream(
        core.list_namespaced_pod, "default", field_selector=f"metadata.name={name}", timeout_seconds=30
    ):
        if event["object"].status.phase == phase:
            return event["object"]
    raise AssertionError(f"{name} has not become {phase}")


def test_create_read_list_patch_delete(core: Any) -> None:
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a", labels={"x": "y"}), data={"k": "v"})
    made = core.create_namespaced_config_map("default", body)
    assert made.metadata.uid
    assert core.read_namespaced_config_map("a", "default").data == {"k": "v"}
    assert [item.metadata.name for item in core.list_namespaced_config_map("default", label_selector="x=y").items] == [
        "a"
    ]
    assert core.patch_namespaced_config_map("a", "default", {"data": {"k": "w"}}).data == {"k": "w"}
    made.data = {"k": "stale"}
    with pytest.raises(ApiException) as conflict:
        core.replace_namespaced_config_map("a", "default", made)
    assert conflict.value.status == 409
    core.delete_namespaced_config_map("a", "default")
    with pytest.raises(ApiException) as gone:
        core.read_namespaced_config_map("a", "default")
    assert gone.value.status == 404
    assert json.loads(str(gone.value.body))["reason"] == "NotFound"


def test_paging(core: Any) -> None:
    for number in range(5):
        meta = client.V1ObjectMeta(name=f"page-{number}", labels={"page": "yes"})
        core.create_namespaced_config_map("default", client.V1ConfigMap(metadata=meta))
    found, more = [], None
    while more != "":
        page = core.list_namespaced_config_map("default", label_selector="page=yes", limit=2, _continue=more)
        found += [item.metadata.name for item in page.items]
        more = page.metadata._continue or ""
    assert found == [f"page-{number}" for number in range(5)]
    core.delete_collection_namespaced_config_map("default", label_selector="page=yes")


def test_watch_sees_every_change(core: Any) -> None:
    since = core.list_namespaced_secret("default").metadata.resource_version

    def work() -> None:
        body = client.V1Secret(metadata=client.V1ObjectMeta(name="watched"), string_data={"k": "v"})
        core.create_namespaced_secret("default", body)
        core.patch_namespaced_secret("watched", "default", {"stringData": {"k": "w"}})
        core.delete_namespaced_secret("watched", "default")

    worker = threading.Thread(target=work)
    worker.start()
    seen = []
    watcher = watch.Watch()
    for event in watcher.stream(core.list_namespaced_secret, "default", resource_version=since, timeout_seconds=20):
        if event["object"].metadata.name == "watched":
            seen.append((event["type"], base64.b64decode(event["object"].data["k"]).decode()))
        if event["type"] == "DELETED":
            watcher.stop()
    worker.join()
    assert seen == [("ADDED", "v"), ("MODIFIED", "w"), ("DELETED", "w")]


def test_a_job_and_its_log(api: Any, core: Any) -> None:
    template = client.V1PodTemplateSpec(spec=simple_pod("x", "sh", "-c", "echo one; echo two").spec)
    job = client.V1Job(metadata=client.V1ObjectMeta(name="job"), spec=client.V1JobSpec(template=template))
    batch = client.BatchV1Api(api)
    batch.create_namespaced_job("default", job)
    watcher = watch.Watch()
    for event in watcher.stream(batch.list_namespaced_job, "default", timeout_seconds=30):
        if event["object"].status.succeeded:
            watcher.stop()
    pods = core.list_namespaced_pod("default", label_selector="job-name=job").items
    assert core.read_namespaced_pod_log(pods[0].metadata.name, "default") == "one\ntwo\n"
    assert core.read_namespaced_pod_log(pods[0].metadata.name, "default", tail_lines=1) == "two\n"
    followed = watch.Watch().stream(core.read_namespaced_pod_log, name=pods[0].metadata.name, namespace="default")
    assert list(followed) == ["one", "two"]


def test_exec(core: Any) -> None:
    core.create_namespaced_pod("default", simple_pod("shell", "sleep", "1000"))
    wait_for(core, "shell", "Running")
    said = stream(
        core.connect_get_namespaced_pod_exec, "shell", "default", command=["sh", "-c", "echo out; echo err >&2"],
        stderr=True, stdin=False, stdout=True, tty=False,
    )  # fmt: skip
    assert sorted(said.split()) == ["err", "out"]
    session = stream(
        core.connect_get_namespaced_pod_exec, "shell", "default", command=["sh"],
        stderr=True, stdin=True, stdout=True, tty=False, _preload_content=False,
    )  # fmt: skip
    session.write_stdin("echo hello $HOSTNAME$(hostname)\nexit 3\n")
    session.run_forever(timeout=20)
    assert "shell" in session.read_stdout()
    assert session.returncode == 3
    session.close()
    core.delete_namespaced_pod("shell", "default")


def test_port_forward(core: Any) -> None:
    server = (
        "import os, socket\n"
        "server = socket.create_server((os.environ['DANLU_POD_IP'], 7000))\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    peer, _ = server.accept()\n"
        "    peer.sendall(b'you said ' + peer.recv(100)); peer.close()\n"
    )
    probe = client.V1Probe(tcp_socket=client.V1TCPSocketAction(port=7000), period_seconds=1)
    core.create_namespaced_pod("default", simple_pod("echo", "python3", "-c", server, startup_probe=probe))
    wait_for(core, "echo", "Running")
    for _ in range(100):
        if "ready" in core.read_namespaced_pod_log("echo", "default"):
            break
    forward = portforward(core.connect_get_namespaced_pod_portforward, "echo", "default", ports="7000")
    try:
        peer: socket.socket = forward.socket(7000)
        peer.settimeout(10)
        peer.sendall(b"hi")
        assert peer.recv(100) == b"you said hi"
        assert forward.error(7000) is None
    finally:
        forward.close()
    core.delete_namespaced_pod("echo", "default")


def test_dynamic_client_and_custom_resources(api: Any) -> None:
    names = {"plural": "ovens", "singular": "oven", "kind": "Oven"}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"heat": {"type": "integer"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ovens.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    extensions: Any = client.ApiextensionsV1Api(api)
    extensions.create_custom_resource_definition(definition)
    for _ in range(200):
        conditions = extensions.read_custom_resource_definition("ovens.example.com").status.conditions or []
        if any(c.type == "Established" and c.status == "True" for c in conditions):
            break
    ovens = dynamic.DynamicClient(api).resources.get(api_version="example.com/v1", kind="Oven")
    body = {"apiVersion": "example.com/v1", "kind": "Oven", "metadata": {"name": "big"}, "spec": {"heat": 1}}
    assert ovens.create(body=body, namespace="default").spec.heat == 1
    assert [item.metadata.name for item in ovens.get(namespace="default").items] == ["big"]
    custom = client.CustomObjectsApi(api)
    with pytest.raises(ApiException) as invalid:
        custom.patch_namespaced_custom_object("example.com", "v1", "default", "ovens", "big", {"spec": {"heat": "x"}})
    assert invalid.value.status == 422
    ovens.delete(name="big", namespace="default")


def test_server_side_apply(api: Any) -> None:
    maps = dynamic.DynamicClient(api).resources.get(api_version="v1", kind="ConfigMap")

    def body(value: str) -> dict[str, Any]:
        meta = {"name": "applied", "namespace": "default"}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"k": value}}

    made = maps.server_side_apply(body=body("a"), name="applied", namespace="default", field_manager="one")
    assert made.data.k == "a"
    with pytest.raises(dynamic.exceptions.ConflictError) as conflict:
        maps.server_side_apply(body=body("b"), name="applied", namespace="default", field_manager="two")
    assert 'conflict with "one": .data.k' in json.loads(str(conflict.value.body))["message"]
    forced = maps.server_side_apply(
        body=body("b"), name="applied", namespace="default", field_manager="two", force_conflicts=True
    )
    assert forced.data.k == "b"


def test_create_from_yaml(api: Any, core: Any, tmp_path: Path) -> None:
    manifest = tmp_path / "all.yaml"
    manifest.write_text(
        textwrap.dedent(
            """
            apiVersion: v1
            kind: Service
            metadata: {name: from-yaml}
            spec:
              selector: {app: x}
              ports: [{port: 80}]
            ---
            apiVersion: apps/v1
            kind: Deployment
            metadata: {name: from-yaml}
            spec:
              selector: {matchLabels: {app: x}}
              template:
                metadata: {labels: {app: x}}
                spec: {containers: [{name: c, image: pause}]}
            """
        )
    )
    utils.create_from_yaml(api, str(manifest))
    assert core.read_namespaced_service("from-yaml", "default").spec.cluster_ip
    with pytest.raises(utils.FailToCreateError, match="AlreadyExists"):
        utils.create_from_yaml(api, str(manifest))
    client.AppsV1Api(api).delete_namespaced_deployment("from-yaml", "default")


def test_a_service_account_token_from_the_client(danlu: Danlu, api: Any, core: Any) -> None:
    """Log in with a token that the client itself asked for; what it may not do is forbidden."""
    spec = client.V1TokenRequestSpec(audiences=[])
    token = core.create_namespaced_service_account_token(
        "default", "default", client.AuthenticationV1TokenRequest(spec=spec)
    ).status.token
    theirs = client.Configuration.get_default_copy()
    theirs.host, theirs.ssl_ca_cert = api.configuration.host, api.configuration.ssl_ca_cert
    theirs.api_key = {"authorization": f"Bearer {token}"}
    with client.ApiClient(theirs) as weak:
        with pytest.raises(ApiException) as forbidden:
            client.CoreV1Api(weak).list_namespaced_secret("default")
        assert forbidden.value.status == 403
        assert "system:serviceaccount:default:default" in str(forbidden.value.body)


# -- Helm

CHART = {
    "Chart.yaml": "apiVersion: v2\nname: shop\nversion: 0.1.0\nappVersion: '1'\n",
    "values.yaml": "replicas: 1\nmessage: welcome\n",
    "templates/config.yaml": """
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-config
data:
  message: {{ .Values.message | quote }}
""",
    "templates/deployment.yaml": """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  labels: {app.kubernetes.io/managed-by: {{ .Release.Service }}}
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels: {app: {{ .Release.Name }}}
  template:
    metadata:
      labels: {app: {{ .Release.Name }}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: c
        image: pause
        envFrom:
        - configMapRef: {name: {{ .Release.Name }}-config}
""",
    "templates/hook.yaml": """
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-hook
  annotations:
    helm.sh/hook: pre-install
    helm.sh/hook-delete-policy: hook-succeeded
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: busybox, command: ["true"]}]
""",
    "templates/NOTES.txt": "{{ .Release.Name }} is there\n",
}


@pytest.fixture(scope="module")
def helm() -> str:
    """The one on PATH, or built from Go modules."""
    found = shutil.which("helm")
    if found:
        return found
    if shutil.which("go") is None:
        pytest.skip("neither helm nor Go is on PATH; with either, Helm is tested")
    built = subprocess.run([ROOT / "scripts/real-kubernetes", "helm"], capture_output=True, text=True, timeout=600)
    if built.returncode != 0:
        pytest.skip(f"helm could not be built: {built.stderr.strip().splitlines()[-1:]}")
    return next(f"{folder}/helm" for folder in built.stdout.split() if Path(folder, "helm").is_file())


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chart") / "shop"
    for name, text in CHART.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.timeout(700)
def test_helm(danlu: Danlu, helm: str, chart: Path) -> None:
    def run(*words: str) -> str:
        return danlu.run(helm, *words).stdout

    def message() -> str:
        return danlu.kubectl("get", "configmap", "my-config", "-o", "jsonpath={.data.message}")

    installed = run("install", "my", str(chart), "--wait", "--timeout", "60s")
    assert "STATUS: deployed" in installed
    assert "my is there" in installed
    assert message() == "welcome"
    assert danlu.kubectl("get", "deployment", "my", "-o", "jsonpath={.status.readyReplicas}") == "1"
    assert danlu.kubectl("get", "job", "my-hook", "--ignore-not-found") == "", "the hook ran and was taken away"
    run("upgrade", "my", str(chart), "--set", "message=bonjour,replicas=2", "--wait", "--timeout", "60s")
    assert message() == "bonjour"
    assert danlu.kubectl("get", "deployment", "my", "-o", "jsonpath={.status.readyReplicas}") == "2"
    run("rollback", "my", "1", "--wait", "--timeout", "60s")
    assert message() == "welcome"
    listed = yaml.safe_load(run("list", "-o", "yaml"))
    assert [(release["name"], release["revision"], release["status"]) for release in listed] == [
        ("my", "3", "deployed")
    ]
    history = json.loads(run("history", "my", "-o", "json"))
    assert [entry["revision"] for entry in history] == [1, 2, 3]
    run("uninstall", "my", "--wait", "--timeout", "60s")
    assert danlu.kubectl("get", "deployment,configmap", "-o", "name", "-l", "app.kubernetes.io/managed-by=Helm") == ""
    assert yaml.safe_load(run("list", "-o", "yaml")) in (None, [])
