# ruff: noqa: ASYNC240
from __future__ import annotations

import base64
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from danlu.embedded.node.volumes import folders
from danlu.embedded.node.volumes.folders import PreparedVolumes, VolumeError
from danlu.errors import NotFound
from danlu.meta.kind import Kind, Object


class Objects:
    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        self.tokens = 0

    def put(self, plural: str, name: str, **fields: Any) -> None:
        self.objects[(plural, name)] = {"metadata": {"name": name, "uid": name}, **fields}

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        try:
            return self.objects[(kind.plural, name)]
        except KeyError:
            raise NotFound.of(kind.plural, name) from None

    async def create_subresource(self, _k: Kind, _n: str, _ns: str, subresource: str, obj: Object) -> Object:
        assert subresource == "token"
        self.tokens += 1
        return {**obj, "status": {"token": f"token-{self.tokens}"}}


class Node:
    """A data directory, the objects of an API, and pods made on it."""

    def __init__(self, path: Path) -> None:
        self.data_dir = str(path / "data")
        self.client = Objects()
        self.node_name = "node-1"
        self.pod: Object = {}

    async def prepare(self, *wanted: Object, **spec: Any) -> PreparedVolumes:
        self.pod = {
            "metadata": {"name": "p", "namespace": "ns", "uid": "u1", "labels": {"app": "x"}},
            "spec": {"volumes": list(wanted), "containers": [{"name": "c"}], **spec},
        }
        return await folders.prepare(self.pod, self)  # type: ignore[arg-type]


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    made = Node(tmp_path)
    yield made
    await folders.tear_down("u1", made.data_dir)


def mount(name: str, path: str = "/m", **more: Any) -> Object:
    return {"name": "c", "volumeMounts": [{"name": name, "mountPath": path, **more}]}


async def test_config_map_files_change_as_a_whole(node: Node) -> None:
    node.client.put("configmaps", "c", data={"a": "1", "b": "2"}, binaryData={"x": base64.b64encode(b"\0").decode()})
    prepared = await node.prepare({"name": "v", "configMap": {"name": "c", "defaultMode": 0o400}})
    [at] = prepared.mounts(mount("v"))
    assert (at.target, at.read_only, at.is_file) == ("/m", True, False)
    folder = Path(at.source)
    assert (folder / "a").read_text() == "1"
    assert (folder / "x").read_bytes() == b"\0"
    assert stat.S_IMODE((folder / "a").stat().st_mode) == 0o400
    before = os.readlink(folder / "..data")
    await prepared.refresh()
    assert os.readlink(folder / "..data") == before
    node.client.put("configmaps", "c", data={"a": "changed"})
    await prepared.refresh()
    assert (folder / "a").read_text() == "changed"
    assert sorted(name for name in os.listdir(folder) if not name.startswith("..")) == ["a"]
    node.client.objects.clear()
    await prepared.refresh()
    assert (folder / "a").read_text() == "changed"


async def test_items_and_optional(node: Node) -> None:
    node.client.put("secrets", "s", data={"k": base64.b64encode(b"v").decode()})
    chosen = {"name": "s", "secret": {"secretName": "s", "items": [{"key": "k", "path": "deep/er", "mode": 0o600}]}}
    gone = {"name": "o", "secret": {"secretName": "none", "optional": True}}
    prepared = await node.prepare(chosen, gone)
    assert Path(prepared.paths["s"], "deep/er").read_text() == "v"
    assert [name for name in os.listdir(prepared.paths["o"]) if not name.startswith("..")] == []


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ({"configMap": {"name": "none"}}, 'MountVolume.SetUp failed for volume "v" : configmap "none" not found'),
        ({"secret": {"secretName": "none"}}, 'MountVolume.SetUp failed for volume "v" : secret "none" not found'),
        (
            {"configMap": {"name": "c", "items": [{"key": "z", "path": "z"}]}},
            'MountVolume.SetUp failed for volume "v" : configmap references non-existent config key: z',
        ),
        (
            {"persistentVolumeClaim": {"claimName": "none"}},
            "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process "
            "volumes=[v]: error processing PVC ns/none: failed to fetch PVC from API server: "
            'persistentvolumeclaims "none" not found',
        ),
        (
            {"persistentVolumeClaim": {"claimName": "pending"}},
            "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process "
            "volumes=[v]: error processing PVC ns/pending: PVC is not bound",
        ),
        (
            {"hostPath": {"path": "/etc/passwd", "type": "Directory"}},
            'MountVolume.SetUp failed for volume "v" : hostPath type check failed: /etc/passwd is not a directory',
        ),
        (
            {"nfs": {"server": "s", "path": "/"}},
            'MountVolume.SetUp failed for volume "v" : volumes of kind nfs are not supported by this node',
        ),
    ],
)
async def test_what_cannot_be_had_is_said_as_kubelet_says_it(node: Node, volume: Object, message: str) -> None:
    node.client.put("configmaps", "c", data={"a": "1"})
    node.client.put("persistentvolumeclaims", "pending", spec={}, status={"phase": "Pending"})
    with pytest.raises(VolumeError) as caught:
        await node.prepare({"name": "v", **volume})
    assert caught.value.message == message


async def test_claims_outlive_pods_and_empty_dirs_do_not(node: Node, tmp_path: Path) -> None:
    node.client.put("persistentvolumeclaims", "d", spec={"volumeName": "pv"}, status={"phase": "Bound"})
    node.client.put("persistentvolumes", "pv", spec={"hostPath": {"path": str(tmp_path / "pv")}})
    prepared = await node.prepare(
        {"name": "d", "persistentVolumeClaim": {"claimName": "d"}},
        {"name": "e", "emptyDir": {"sizeLimit": "1Mi"}},
        {"name": "m", "emptyDir": {"medium": "Memory"}},
    )
    Path(prepared.paths["d"], "kept").write_text("x")
    Path(prepared.paths["e"], "locked").mkdir()
    Path(prepared.paths["e"], "locked/f").write_text("x")
    Path(prepared.paths["e"], "locked").chmod(0o500)
    assert prepared.empty_dirs[0].size_limit == "1Mi"
    await folders.tear_down("u1", node.data_dir)
    assert (tmp_path / "pv/kept").exists()
    assert not Path(prepared.paths["e"]).exists()
    assert not Path(prepared.paths["m"]).exists()


async def test_projected_service_account(node: Node) -> None:
    node.client.put("configmaps", "kube-root-ca.crt", data={"ca.crt": "CA"})
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]
    prepared = await node.prepare({"name": "v", "projected": {"sources": sources}})
    folder = Path(prepared.paths["v"])
    assert {name: (folder / name).read_text() for name in ("token", "ca.crt", "namespace")} == {
        "token": "token-1",
        "ca.crt": "CA",
        "namespace": "ns",
    }
    await prepared.refresh()
    assert node.client.tokens == 1


async def test_sub_path(node: Node, tmp_path: Path) -> None:
    node.client.put("configmaps", "c", data={"a": "1"})
    prepared = await node.prepare({"name": "e", "emptyDir": {}}, {"name": "f", "configMap": {"name": "c"}})
    [deep] = prepared.mounts(mount("e", subPath="x/y"))
    assert stat.S_IMODE(Path(deep.source).stat().st_mode) == 0o777
    [file] = prepared.mounts(mount("f", subPath="a"))
    assert file.is_file
    assert Path(file.source).read_text() == "1"
    [expanded] = prepared.mounts(mount("e", subPathExpr="runs/$(N)"), {"N": "7"})
    assert expanded.source.endswith("/runs/7")
    with pytest.raises(VolumeError, match="missing value for N"):
        prepared.mounts(mount("e", subPathExpr="runs/$(N)"))


@pytest.mark.parametrize("path", ["../x", "out", "out/deeper", "x/../../y"])
async def test_sub_path_never_leads_out(node: Node, tmp_path: Path, path: str) -> None:
    prepared = await node.prepare({"name": "e", "emptyDir": {}})
    os.symlink(tmp_path, Path(prepared.paths["e"], "out"))
    with pytest.raises(VolumeError) as caught:
        prepared.mounts(mount("e", subPath=path))
    assert caught.value.reason == "CreateContainerConfigError"


async def test_host_path(node: Node, tmp_path: Path) -> None:
    prepared = await node.prepare(
        {"name": "h", "hostPath": {"path": str(tmp_path / "new"), "type": "DirectoryOrCreate"}}
    )
    assert (tmp_path / "new").is_dir()
    assert not prepared.mounts(mount("h"))[0].read_only
    with pytest.raises(VolumeError, match="Danlu's own data directory"):
        await node.prepare({"name": "h", "hostPath": {"path": node.data_dir + "/store"}})


@pytest.mark.parametrize("target", ["", "/pki", "/.."])
async def test_no_link_leads_into_the_data_directory_or_above_it(node: Node, tmp_path: Path, target: str) -> None:
    """Admission saw a harmless path; what counts is where it leads when it is mounted."""
    os.makedirs(f"{node.data_dir}/pki", exist_ok=True)
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir(exist_ok=True)
    link = outside / f"link{len(target)}"
    os.symlink(f"{node.data_dir}{target}", link)
    with pytest.raises(VolumeError, match="Danlu's own data directory"):
        await node.prepare({"name": "h", "hostPath": {"path": str(link)}})
    node.client.put("persistentvolumeclaims", "c", spec={"volumeName": "pv"}, status={"phase": "Bound"})
    node.client.put("persistentvolumes", "pv", spec={"hostPath": {"path": str(link)}})
    with pytest.raises(VolumeError, match="Danlu's own data directory"):
        await node.prepare({"name": "h", "persistentVolumeClaim": {"claimName": "c"}})


async def test_context_needs_little() -> None:
    context: Any = SimpleNamespace(client=Objects(), data_dir="/nonexistent", node_name="n")
    pod = {"metadata": {"name": "p", "namespace": "ns", "uid": "u2"}, "spec": {}}
    prepared = await folders.prepare(pod, context)
    assert prepared.mounts({"name": "c"}) == []


async def test_a_volume_in_memory_has_its_size(node: Node) -> None:
    """As root it is full at its size; its end takes it away."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system for all containers of a pod")
    prepared = await node.prepare({"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}})
    path = Path(prepared.paths["m"])
    try:
        if not path.is_mount():
            pytest.skip("no file system can be mounted here")
        assert stat.S_IMODE(path.stat().st_mode) == 0o777
        with pytest.raises(OSError, match="No space left"):
            (path / "file").write_bytes(b"x" * (2 << 20))
    finally:
        await folders.tear_down("u1", node.data_dir)
    assert not path.exists()
