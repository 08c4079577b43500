"""Kubeconfig files as kubectl reads them."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from danlu.client import config


def write(path: Path, **changes: object) -> Path:
    content = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://h:1/", "certificate-authority": "ca.pem"}}],
        "users": [{"name": "u", "user": {"client-certificate-data": base64.b64encode(b"cert").decode()}}],
        **changes,
    }
    path.write_text(yaml.safe_dump(content))
    return path


def test_data_and_files_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"authority")
    loaded = config.load(write(tmp_path / "config"))
    assert loaded.server == "https://h:1"
    assert loaded.namespace == "team"
    assert loaded.ca == b"authority"
    assert loaded.client_certificate == b"cert"


def test_several_files_are_merged_and_the_first_wins(tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    first.write_text(yaml.safe_dump({"users": [{"name": "u", "user": {"token": "first"}}]}))
    write(second, users=[{"name": "u", "user": {"token": "second"}}])
    (tmp_path / "ca.pem").write_bytes(b"")
    loaded = config.load(environ={"KUBECONFIG": f"{first}:{tmp_path / 'missing'}:{second}"})
    assert loaded.token == "first"


def test_inside_a_pod(tmp_path: Path) -> None:
    for name, content in (("token", "t"), ("namespace", "ns"), ("ca.crt", "pem")):
        (tmp_path / name).write_text(content)
    loaded = config.in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}, tmp_path)
    assert loaded.server == "https://10.0.0.1:6443"
    assert loaded.namespace == "ns"
    assert loaded.token_file == str(tmp_path / "token")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1, 2]", "is not a kubeconfig"),
        ("a: [", "cannot be read"),
        ("{}", "names no current-context"),
        ("current-context: gone", "has no context 'gone'"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "config").write_text(content)
    with pytest.raises(config.ClientConfigError, match=message):
        config.load(tmp_path / "config")


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(config.ClientConfigError, match="no kubeconfig at"):
        config.load(environ={"HOME": str(tmp_path)})
