"""Dockerfiles carried out: what a build reads, what it makes, and what of an earlier one it takes over."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.embedded.node.test_podworker import in_phase, make_agent, run, text_of
from tests.ociimages import LayerTar, MadeImage, small_system

from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.embedded.node.agent import Agent
from danlu.embedded.node.images import archive
from danlu.embedded.node.images.building import expansion, instructions
from danlu.embedded.node.images.building.ignorefile import IgnoreRules
from danlu.embedded.node.images.building.imagebuilder import BuildRequest, BuiltImage, ImageBuilder
from danlu.embedded.node.images.imagestore import ImageStore, StoredImage
from danlu.embedded.node.imagesource import ImageError, MachineImages
from danlu.embedded.node.sandbox import detection
from danlu.meta.kind import Object

BASE = "example.com/small:1"
NAME = "me/app:1"


@pytest.fixture(scope="session")
def sandbox() -> None:
    if detection.capabilities().mode == "none":
        pytest.skip("this machine allows no namespaces, and RUN needs them")


class Builds:
    """A data directory, a context, and what builds in them said."""

    def __init__(self, folder: Path) -> None:
        self.data, self.context = folder / "data", folder / "context"
        self.store = ImageStore(self.data)
        self.context.mkdir()
        self.printed = b""
        self.done: list[tuple[int, bool]] = []

    def load(self, image: MadeImage, name: str = BASE) -> None:
        archive.load(self.store, io.BytesIO(image.build(packed=False).docker_archive(name)))

    def file(self, name: str, text: str = "") -> Path:
        path = self.context / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text or name)
        return path

    def __call__(self, dockerfile: str, **about: Any) -> BuiltImage:
        self.printed, self.done = b"", []
        (self.context.parent / "Dockerfile").write_text(dockerfile)
        builder = ImageBuilder(self.data, MachineImages(), show=self._show, tell=self._tell)
        return builder.build(BuildRequest(self.context.parent / "Dockerfile", self.context, (NAME,), **about))

    def _show(self, data: bytes) -> None:
        self.printed += data

    def _tell(self, line: int, _: str, cached: bool) -> None:
        self.done.append((line, cached))

    def config(self, dockerfile: str, **about: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.image(self(dockerfile, **about)).config["config"]
        return found

    def image(self, built: BuiltImage) -> StoredImage:
        return self.store.image(built.digest)

    def names(self, built: BuiltImage) -> list[list[str]]:
        """What is in each layer."""
        found = []
        for blob, _ in self.image(built).layers:
            with tarfile.open(self.store.blob(blob)) as layer:
                found.append(layer.getnames())
        return found

    def files(self, dockerfile: str, **about: Any) -> dict[str, tarfile.TarInfo]:
        """Of all the layers that were made, the later over the earlier; whiteouts as they are."""
        found: dict[str, tarfile.TarInfo] = {}
        for blob, _ in self.image(self(dockerfile, **about)).layers:
            with tarfile.open(self.store.blob(blob)) as layer:
                found |= {member.name: member for member in layer}
        return found


@pytest.fixture
def builds(tmp_path: Path) -> Builds:
    made = Builds(tmp_path)
    made.load(MadeImage({"Env": ["PATH=/bin", "OLD=1"], "Cmd": ["base"]}, [_tiny()]))
    return made


@pytest.fixture
def running(tmp_path: Path, sandbox: None) -> Builds:
    made = Builds(tmp_path)
    made.load(small_system())
    return made


def _tiny() -> bytes:
    layer = LayerTar().folder("tmp", 0o1777).folder("etc").folder("usr").folder("usr/bin").link("bin", "usr/bin")
    layer.add("etc/passwd", b"root:x:0:0::/root:/bin/sh\nworker:x:1234:2345::/home/worker:/bin/sh\n")
    layer.add("etc/group", b"root:x:0:\nworkers:x:2345:\nextra:x:3456:\n")
    return layer.data()


# -- reading


def test_lines_comments_and_continuations() -> None:
    text = "# escape=\\\n\nFROM x\nRUN a \\\n  # a comment\n\n  && b\n# the end\nCMD c\n"
    found = instructions.parse(text).instructions
    assert [(one.line, one.word, one.rest) for one in found] == [
        (3, "FROM", "x"), (4, "RUN", "a   && b"), (9, "CMD", "c"),
    ]  # fmt: skip
    windows = instructions.parse("# escape=`\r\nFROM x\r\nRUN dir `\r\n C:\\\r\n").instructions
    assert windows[1].rest == "dir  C:\\"


def test_heredocs() -> None:
    text = "FROM x\nRUN <<EOF\none\n# no comment\nEOF\nCOPY <<-'A' <<B /x/\n\tliteral\n\tA\nwith $V\nB\nCMD z\n"
    _, first, second, last = instructions.parse(text).instructions
    assert [heredoc.text for heredoc in first.heredocs] == ["one\n# no comment\n"]
    assert [(one.name, one.text, one.is_literal) for one in second.heredocs] == [
        ("A", "literal\n", True), ("B", "with $V\n", False),
    ]  # fmt: skip
    assert last.word == "CMD"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a$V", "a1"), ("${V}b", "1b"), ("${NO:-else}", "else"), ("${E-else}", ""), ("${E:-else}", "else"),
        ("${V:+then}", "then"), ("${NO:+then}", ""), ("'$V'", "$V"), ('"$V"', "1"), ("\\$V", "$V"), ("$NO", ""),
        ("${NO:-${V}x}", "1x"), ('"a \\" b"', 'a " b'), ("$", "$"), ("a$-", "a$-"),
    ],
)  # fmt: skip
def test_variables(text: str, meant: str) -> None:
    assert expansion.expand(text, {"V": "1", "E": ""}) == meant


@pytest.mark.parametrize(
    ("rules", "left_out", "kept"),
    [
        ("secret\n*.md\n**/*.pyc\n!notes.md", ["secret/key", "a.md", "p/c/x.pyc"], ["notes.md", "p/a.md", "x.py"]),
        ("*\n!src", ["a", "b/c"], ["src/x"]),
        ("/a/b", ["a/b", "a/b/c"], ["b", "x/a/b"]),
        ("# a comment\n\na?c\n[x-z]*", ["abc", "yes"], ["ac", "no", "# a comment"]),
        ("dir/\n./other", ["dir/x", "other"], ["dirx"]),
        ("../out\n[", ["["], ["out"]),
    ],
)
def test_ignore_rules(rules: str, left_out: list[str], kept: list[str]) -> None:
    found = IgnoreRules(rules)
    assert [path for path in (*left_out, *kept) if found.leaves_out(path)] == left_out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no FROM line"),
        ("FROM\n", "line 1: FROM needs an image"),
        ("RUN x\nFROM y\n", "line 1: RUN comes before FROM"),
        ("FROM scratch\n\nFRY eggs\n", "line 3: FRY is not a Dockerfile instruction"),
        ("FROM scratch\nENV A='b\n", "line 2: a single quote has no end"),
        ("FROM scratch\nENV =b\n", "line 2: '=b' is not NAME=VALUE"),
        ("FROM scratch\nCOPY a\n", "line 2: COPY needs a source and a target"),
        ("FROM scratch\nCOPY none /\n", "line 2: none is not in the context"),
        ("FROM scratch\nRUN <<EOF\nx\n", "line 2: the here-document EOF has no end"),
        ("FROM scratch\nEXPOSE 99999\n", "line 2: 99999 is not a port"),
        ("FROM scratch\nSTOPSIGNAL SIGNONE\n", "line 2: SIGNONE is not a signal"),
        ("FROM scratch\nCOPY --to=x a /\n", "line 2: COPY has no flag --to"),
        ("FROM scratch\nADD https://example.com/x /\n", "line 2: https://example.com/x is not fetched by ADD here"),
        ("FROM scratch\nRUN --mount=type=ssh x\n", "line 2: --mount=type=ssh is not known here"),
        ("FROM --platform=linux/s390x scratch\n", "line 1: images for linux/s390x cannot be built on this machine"),
        ("FROM scratch\nHEALTHCHECK --interval=soon CMD x\n", "line 2: soon is not a duration"),
    ],
)
def test_what_cannot_be_used_is_said_with_its_line(builds: Builds, text: str, said: str) -> None:
    with pytest.raises(ImageError) as problem:
        builds(text)
    assert str(problem.value).startswith(said)
    assert builds.store.find("docker.io/me/app:1") is None


# -- configurations


def test_a_configuration(builds: Builds) -> None:
    found = builds.config(
        f"ARG TAG=9\nARG BASE={BASE}\nFROM $BASE\nARG TAG\nARG OTHER=two\nENV A=$TAG B='x y' C=${{OTHER}}\nENV D e f\n"
        'LABEL one="1" two=2\nUSER worker\nWORKDIR /srv\nWORKDIR app\nEXPOSE 80 53/udp\nVOLUME ["/data"]\n'
        'STOPSIGNAL SIGINT\nHEALTHCHECK --interval=1m30s --retries=3 CMD test -e /x\nENTRYPOINT ["go"]\n',
        arguments={"OTHER": "three"},
    )
    assert found["Env"] == ["PATH=/bin", "OLD=1", "A=9", "B=x y", "C=three", "D=e f"]
    assert (found["Labels"], found["User"]) == ({"one": "1", "two": "2"}, "worker")
    assert found["WorkingDir"] == "/srv/app"
    assert found["ExposedPorts"] == {"80/tcp": {}, "53/udp": {}}
    assert (found["Volumes"], found["StopSignal"]) == ({"/data": {}}, "SIGINT")
    assert found["Healthcheck"] == {"Test": ["CMD-SHELL", "test -e /x"], "Interval": 90 * 10**9, "Retries": 3}
    assert found["Entrypoint"] == ["go"]
    assert "Cmd" not in found, "the base's command was meant for another program"


def test_commands_and_shells(builds: Builds) -> None:
    assert builds.config(f"FROM {BASE}\nENV X=1\n")["Cmd"] == ["base"]
    assert builds.config(f"FROM {BASE}\nCMD run $ME\n")["Cmd"] == ["/bin/sh", "-c", "run $ME"]
    assert builds.config(f'FROM {BASE}\nCMD ["a"]\nENTRYPOINT b\n')["Cmd"] == ["a"]
    assert builds.config(f'FROM {BASE}\nSHELL ["/bin/x", "-y"]\nCMD z\n')["Cmd"] == ["/bin/x", "-y", "z"]


def test_onbuild_is_the_next_images(builds: Builds) -> None:
    builds.file("a")
    builds(f"FROM {BASE}\nONBUILD COPY a /from-onbuild\nONBUILD ENV LATER=1\n")
    builds.store.name("example.com/parent:1", builds.store.names()["docker.io/me/app:1"].digest, by_hand=True)
    files = builds.files("FROM example.com/parent:1\n")
    assert "from-onbuild" in files
    found = builds.config("FROM example.com/parent:1\n")
    assert "LATER=1" in found["Env"]
    assert "OnBuild" not in found


def test_an_argument_that_nobody_asks_for_is_told(builds: Builds) -> None:
    assert builds("FROM scratch\nARG A\n", arguments={"A": "1", "B": "2"}).unused == ["B"]


# -- files


def test_where_copies_go(builds: Builds) -> None:
    for name in ("a.py", "b.py", "notes.md", "pkg/__init__.py", "pkg/deep/x"):
        builds.file(name)
    (builds.context / "pkg/link").symlink_to("../../../etc/passwd")
    files = builds.files(
        f"FROM {BASE}\nWORKDIR /w\nCOPY *.py src/\nCOPY a.py renamed\nCOPY pkg /lib/pkg\nCOPY a.py /tmp\n"
        'COPY --chown=worker:extra --chmod=600 ["notes.md", "/own"]\nCOPY pkg/__init__.py /bin/tool\n'
    )
    assert {"w/src/a.py", "w/src/b.py", "w/renamed", "lib/pkg/__init__.py", "lib/pkg/deep/x", "tmp/a.py"} <= {*files}
    assert files["lib/pkg/link"].linkname == "../../../etc/passwd"
    assert (files["own"].uid, files["own"].gid, files["own"].mode) == (1234, 3456, 0o600)
    assert "usr/bin/tool" in files, "a link of the base is followed"
    assert files["tmp"].mode == 0o1777, "a folder stays as it was below"
    assert {member.mtime for name, member in files.items() if name.startswith("w/src")} == {315619200}


def test_a_file_goes_into_a_folder_that_an_earlier_step_made(builds: Builds) -> None:
    builds.file("dir/inner")
    builds.file("file")
    files = builds.files("FROM scratch\nADD dir/ /x\nADD file /x\n")
    assert files["x"].isdir()
    assert {"x/inner", "x/file"} <= {*files}


def test_heredocs_become_files(builds: Builds) -> None:
    built = builds('FROM scratch\nARG WHO=me\nCOPY <<one <<"two" /d/\nhello "$WHO"\none\nhello $WHO\ntwo\n')
    [tree] = builds.store.unpack(builds.image(built))
    assert (tree / "tree/d/one").read_text() == 'hello "me"\n'
    assert (tree / "tree/d/two").read_text() == "hello $WHO\n"


def test_add_unpacks_archives_and_copy_does_not(builds: Builds) -> None:
    (builds.context / "a.tar").write_bytes(LayerTar().add("in/side", b"x").data())
    files = builds.files("FROM scratch\nADD a.tar /one/\nCOPY a.tar /two/\n")
    assert "one/in/side" in files
    assert "two/a.tar" in files
    assert "one/a.tar" not in files


def test_stages(builds: Builds) -> None:
    builds.file("a")
    text = (
        "FROM scratch AS first\nCOPY a /made\nFROM scratch AS never\nCOPY none /\nFROM first AS second\nCOPY a /more\n"
        "FROM scratch\nCOPY --from=second /made /more /all/\nCOPY --from=0 /made /zero\n"
        f"COPY --from={BASE} /etc/group /g\n"
    )
    assert {*builds.files(text)} == {"all", "all/made", "all/more", "zero", "g"}
    assert {*builds.files(text, target="first")} == {"made"}
    with pytest.raises(ImageError, match="there is no stage third; there are first, never, second"):
        builds(text, target="third")


def test_the_same_bits(builds: Builds, tmp_path: Path) -> None:
    """Another time, another order on the disk, no cache."""
    for name in ("a", "b", "c"):
        builds.file(f"d/{name}")
    text = f"FROM {BASE}\nWORKDIR /w\nCOPY . .\nENV A=b\n"
    first = builds(text)
    for path in builds.context.rglob("*"):
        os.utime(path, (1, 1))
    assert builds(text).digest == first.digest
    assert all(cached for _, cached in builds.done)
    assert builds(text, use_cache=False).digest == first.digest
    assert not all(cached for _, cached in builds.done)
    builds.file("d/a", "changed")
    assert builds(text).digest != first.digest


# -- RUN


def test_run(running: Builds) -> None:
    built = running(
        f"FROM {BASE}\nWORKDIR /srv\nARG GIVEN=arg\nENV NAME=env\nRUN echo $GIVEN $NAME; pwd; echo x > made\n"
        'RUN ["sh", "-c", "rm /etc/made-by; cat made"]\nRUN <<EOF\necho one\necho two > two\nEOF\n'
    )
    assert running.printed.split() == [b"arg", b"env", b"/srv", b"x", b"one"]
    assert running.names(built)[1:] == [["srv"], ["srv", "srv/made"], ["etc", "etc/.wh.made-by"], ["srv", "srv/two"]]


def test_a_rebuild_runs_nothing(running: Builds) -> None:
    running.file("a")
    text = f"FROM {BASE}\nRUN echo once\nCOPY a /a\nRUN cat /a > /b\n"
    first = running(text)
    assert running(text).digest == first.digest
    assert running.printed == b""
    running.file("a", "changed")
    assert running(text).digest != first.digest
    assert running.done == [(1, True), (2, True), (3, False), (4, False)]


def test_a_step_that_fails_leaves_nothing(running: Builds) -> None:
    with pytest.raises(ImageError, match=r"line 3: RUN echo so far; exit 7: ended with 7"):
        running(f"FROM {BASE}\nRUN true\nRUN echo so far; exit 7\n")
    assert running.printed == b"so far\n"
    assert running.store.find("docker.io/me/app:1") is None
    assert [*(running.store.root / "building").iterdir()] == []
    with pytest.raises(ImageError, match=r"line 2: RUN .*executable file not found"):
        running(f'FROM {BASE}\nRUN ["nothing"]\n')


def test_mounts_leave_nothing_in_the_image(running: Builds, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hush")
    running.file("part/of/it", "context")
    text = (
        f"FROM {BASE}\nRUN --mount=type=cache,target=/root/.cache/x --mount=type=secret,id=key \\\n"
        "  --mount=type=bind,source=part,target=/mnt/part --mount=type=tmpfs,target=/scratch \\\n"
        "  cat /run/secrets/key /mnt/part/of/it; ls /root/.cache/x; echo y > /root/.cache/x/kept; echo z > /out\n"
    )
    built = running(text, secrets={"key": secret})
    assert running.printed == b"hushcontext"
    assert running.names(built)[-1] == ["out"]
    running(text, secrets={"key": secret}, use_cache=False)
    assert running.printed == b"hushcontextkept\n"


def test_users(running: Builds) -> None:
    running(f"FROM {BASE}\nUSER worker\nRUN id -u; id -g; echo $HOME\n")
    assert running.printed.split() == [b"1234", b"2345", b"/home/worker"]


@pytest.fixture
async def agent(cluster: Cluster) -> AsyncIterator[Agent]:
    made = make_agent(cluster)
    await made.start()
    if made.capabilities.mode == "none":
        pytest.skip("this machine allows no namespaces, and an image needs them")
    yield made
    await made.stop(kill_pods=True)


async def test_what_was_built_runs_as_a_pod(
    agent: Agent, client: Client, tmp_path: Path, pod_of: Callable[[str], Object]
) -> None:
    store = agent.images.store
    archive.load(store, io.BytesIO(small_system().build(packed=False).docker_archive(BASE)))
    (tmp_path / "Dockerfile").write_text(
        f"FROM {BASE}\nENV WHAT=built\nCOPY Dockerfile /srv/\nRUN echo run > /srv/run\n"
        'CMD ["sh", "-c", "ls /srv; cat /srv/run; echo $WHAT"]\n'
    )
    builder = ImageBuilder(store.root.parent, agent.images.source, show=lambda data: None, tell=lambda *_: None)
    builder.build(BuildRequest(tmp_path / "Dockerfile", tmp_path, (NAME,)))
    found = await run(client, pod_of(NAME), in_phase("Succeeded", "Failed"))
    assert text_of(agent, found).split() == ["Dockerfile", "run", "run", "built"]


@pytest.fixture
def pod_of() -> Callable[[str], Object]:
    from tests.embedded.node.test_images import of_image

    return lambda image: of_image("p", image)


def test_the_image_is_one_for_other_engines(running: Builds) -> None:
    built = running(f"FROM {BASE}\nRUN echo x > /x\nCMD y\n")
    image = running.image(built)
    assert image.manifest["mediaType"] == "application/vnd.oci.image.manifest.v1+json"
    assert len(image.config["history"]) >= len(image.manifest["layers"]) - 1
    saved = io.BytesIO()
    archive.save(running.store, [("docker.io/me/app:1", image)], saved)
    saved.seek(0)
    other = ImageStore(running.data.parent / "other")
    [loaded] = archive.load(other, saved)
    assert json.loads(other.read(other.image(loaded.digest).manifest["config"]["digest"])) == image.config
    assert len(other.unpack(other.image(loaded.digest))) == 2
