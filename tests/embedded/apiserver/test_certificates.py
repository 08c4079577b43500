from __future__ import annotations

import json
import os
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from danlu.embedded.apiserver.auth import kubeconfig
from danlu.embedded.apiserver.auth.certificateauthority import Certificates
from danlu.embedded.apiserver.auth.subjects import BadCertificate, read_subject


def der(path: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(path.read_text())


def test_makes_a_chain_that_tls_accepts(tmp_path: Path) -> None:
    pki = Certificates(tmp_path / "pki")
    server = pki.ensure_server(["gpu-box.lan", "10.1.2.3"])
    client = pki.ensure_client("admin", "kubernetes-admin", ["system:masters", "dev"])
    for path in (tmp_path / "pki").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(server.certificate, server.key)
    server_side.load_verify_locations(pki.authority.certificate)
    server_side.verify_mode = ssl.CERT_REQUIRED
    client_side = ssl.create_default_context(cafile=str(pki.authority.certificate))
    client_side.load_cert_chain(client.certificate, client.key)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    a = client_side.wrap_bio(to_client, to_server, server_hostname="gpu-box.lan")
    b = server_side.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (a, b):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    peer = b.getpeercert(True)
    assert peer is not None
    assert read_subject(peer) == ("kubernetes-admin", ("system:masters", "dev"))


def test_a_second_start_makes_nothing_and_imports_no_cryptography(tmp_path: Path) -> None:
    first = Certificates(tmp_path)
    first.ensure_server()
    first.ensure_client("admin", "admin", ["system:masters"])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    code = (
        "import sys; from pathlib import Path;"
        "from danlu.embedded.apiserver.auth.certificateauthority import Certificates;"
        f"c = Certificates(Path({str(tmp_path)!r}));"
        "c.ensure_server(); c.ensure_client('admin', 'admin', ['system:masters']);"
        "print('cryptography' in sys.modules)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_renews_near_the_end_for_new_names_and_under_a_new_authority(tmp_path: Path) -> None:
    pki = Certificates(tmp_path)
    server = pki.ensure_server()
    original = server.certificate.read_bytes()
    pki.ensure_server(["other.lan"])
    with_name = server.certificate.read_bytes()
    assert with_name != original
    Certificates(tmp_path).ensure_server()  # fewer names are wanted: what is there will do
    assert server.certificate.read_bytes() == with_name

    index = json.loads((tmp_path / "pki.json").read_text())
    index["server"]["ends"] = 0
    (tmp_path / "pki.json").write_text(json.dumps(index))
    Certificates(tmp_path).ensure_server()
    renewed = server.certificate.read_bytes()
    assert renewed != with_name

    (tmp_path / "ca.key").unlink()
    Certificates(tmp_path).ensure_server()
    assert server.certificate.read_bytes() != renewed


@pytest.mark.parametrize(
    "junk", [b"", b"\x30", b"\x30\x82\xff\xff", b"hello world, this is no certificate", b"\x30\x03\x02\x01\x01"]
)
def test_junk_is_no_certificate(junk: bytes) -> None:
    with pytest.raises(BadCertificate):
        read_subject(junk)


def admin(tmp_path: Path) -> dict[str, object]:
    pki = Certificates(tmp_path / "pki")
    return kubeconfig.admin_config(
        "https://127.0.0.1:6443", pki.authority_pem(), pki.ensure_client("admin", "admin", ["system:masters"])
    )


def test_the_written_file_is_yaml_and_is_left_alone_when_right(tmp_path: Path) -> None:
    path, config = tmp_path / "kubeconfig", admin(tmp_path)
    kubeconfig.write(path, config)
    assert yaml.safe_load(path.read_text()) == config
    before = path.stat().st_mtime_ns
    kubeconfig.write(path, config)
    assert path.stat().st_mtime_ns == before


def test_merge_keeps_what_is_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(
        "apiVersion: v1\nkind: Config\nx-mine: {a: 1}\ncurrent-context: prod\n"
        "clusters:\n- name: prod\n  cluster: {server: 'https://prod', "
        "extensions: [{name: e, extension: {last-update: 2024-01-02}}]}\n"
        "contexts:\n- {name: prod, context: {cluster: prod, user: me}}\n"
        "- {name: danlu, context: {cluster: danlu, user: danlu, namespace: lab}}\n"
        "users:\n- {name: me, user: {exec: {command: aws, args: [a]}}}\n"
    )
    path.chmod(0o640)
    kubeconfig.merge(path, admin(tmp_path), use=False)
    merged = yaml.load(path.read_text(), yaml.BaseLoader)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert merged["current-context"] == "prod"
    assert merged["x-mine"] == {"a": "1"}
    assert merged["clusters"][0]["cluster"]["extensions"][0]["extension"]["last-update"] == "2024-01-02"
    assert merged["users"][0]["user"]["exec"]["command"] == "aws"
    assert [entry["name"] for entry in merged["clusters"]] == ["prod", "danlu"]
    assert merged["contexts"][1]["context"]["namespace"] == "lab"
    once = path.read_text()
    kubeconfig.merge(path, admin(tmp_path), use=True)
    kubeconfig.merge(path, admin(tmp_path), use=True)
    assert path.read_text() == once.replace("current-context: prod", "current-context: danlu")


def test_merge_makes_a_file_and_follows_a_link(tmp_path: Path) -> None:
    link, real = tmp_path / "config", tmp_path / "real"
    link.symlink_to(real)
    kubeconfig.merge(link, admin(tmp_path))
    assert link.is_symlink()
    assert yaml.safe_load(real.read_text())["current-context"] == "danlu"
    assert stat.S_IMODE(real.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["a: [", "- 1\n", "clusters: 7\n", "just text"])
def test_a_file_that_is_no_kubeconfig_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(kubeconfig.KubeconfigError):
        kubeconfig.merge(path, admin(tmp_path))
    assert path.read_text() == text
