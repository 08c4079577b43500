"""The everyday commands without a cluster: what is read from words and files, and how rows are written."""

from __future__ import annotations

import io
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from danlu.cli.failures import UsageError
from danlu.cli.language import speaking
from danlu.cli.objects import tabletext
from danlu.cli.objects.logs import seconds
from danlu.cli.objects.manifestoptions import told
from danlu.diagnose import Evidence, explain
from danlu.resources import manifestfiles, podcopy
from danlu.resources.manifestfiles import ManifestError

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("since", "age"),
    [
        ("2026-01-02T03:04:00Z", "5s"),
        ("2026-01-02T03:02:35Z", "90s"),
        ("2026-01-02T02:59:00Z", "5m5s"),
        ("2026-01-02T01:04:05Z", "2h"),
        ("2025-12-31T03:04:05Z", "2d"),
        ("2026-01-02T03:05:00Z", "0s"),
    ],
)
def test_ages_are_written_as_kubectl_writes_them(since: str, age: str) -> None:
    assert tabletext.age(since, NOW) == age


def test_columns_stand_below_each_other_also_in_chinese() -> None:
    with speaking("zh"):
        head = [tabletext.heading("Name"), tabletext.heading("Ready")]
    assert [*tabletext.lines(head, [["mnist-0", "1/1"]])] == ["名称      就绪", "mnist-0   1/1"]


def test_what_a_server_says_moves_no_cursor() -> None:
    assert tabletext.cell("a\x1b[2Jb\nc") == "a [2Jb c"


def test_durations() -> None:
    assert [seconds(text) for text in ("", "30s", "1h5m")] == [0, 30, 3900]
    with pytest.raises(UsageError):
        seconds("5 minutes")


def test_all_documents_of_a_folder_are_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("# nothing\n---\n")
    (tmp_path / "a.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata:\n  text: |\n    ---\n    --- x\n"
        "--- \napiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: two}}]\n"
    )
    (tmp_path / "read.me").write_text("no manifest")
    one, two = manifestfiles.read([str(tmp_path)])
    assert (one.name, two.name) == ("one", "two")
    assert one.object["data"]["text"] == "---\n--- x\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [("a: [", "unreadable"), ("just: data", "no-object"), ("apiVersion: v1\nkind: Pod\n", "no-name"), ("", "empty")],
)
def test_a_file_that_holds_no_objects_is_told_of(tmp_path: Path, text: str, code: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(ManifestError) as refused:
        manifestfiles.read([str(path)])
    assert refused.value.code == code
    assert str(path) in told(refused.value)


def test_what_comes_out_of_a_pod_stays_where_it_belongs(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in ("out/good", "../bad", "out/../../bad"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
        link = tarfile.TarInfo("out/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    packed.seek(0)
    home = tmp_path / "home"
    home.mkdir()
    left_out = podcopy._unpack(packed, home, "out", home)
    assert left_out == ["../bad", "out/../../bad", "out/link"]
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == [
        "home", "home/out", "home/out/good",
    ]  # fmt: skip


def test_that_a_configmap_has_no_pods_is_worth_no_word() -> None:
    about = {"metadata": {"name": "x", "uid": "1"}}
    assert explain({"apiVersion": "v1", "kind": "ConfigMap", **about}, Evidence()) == []
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", **about}
    assert [cause.code for cause in explain(job, Evidence())] == ["DL-NO-PODS"]
