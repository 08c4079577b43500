"""Dockerfiles as entries of the catalogue, docker's own rules for COPY and variables included."""

from __future__ import annotations

from pathlib import Path

import pytest

from danlu.environments import dockerfile
from danlu.environments.catalogue import CatalogueImage, Environment
from danlu.environments.dockerfile import Copy, DockerfileError, parse, put_aside

OF_THE_DOCUMENT = """# Dockerfile.training-base
FROM nvidia/cuda:11.8-devel-ubuntu20.04

# 安装基础依赖
RUN apt-get update && apt-get install -y \\
    python3 \\
    python3-pip \\
    && rm -rf /var/lib/apt/lists/*

# 设置Python环境
ENV PYTHONUNBUFFERED=1
WORKDIR /workspace

# 安装机器学习库
COPY requirements.txt .
RUN pip3 install --no-cache-dir -r requirements.txt

# 复制训练代码
COPY train.py .
COPY data/ ./data/

CMD ["python3", "train.py"]
"""


def test_the_document_s_own_file(tmp_path: Path) -> None:
    recipe = parse(OF_THE_DOCUMENT)
    assert recipe.base == "nvidia/cuda:11.8-devel-ubuntu20.04"
    assert recipe.workdir == "/workspace"
    assert recipe.env == {"PYTHONUNBUFFERED": "1"}
    assert recipe.cmd == ["python3", "train.py"]
    assert recipe.not_run == [
        "apt-get update && apt-get install -y python3 python3-pip && rm -rf /var/lib/apt/lists/*",
        "pip3 install --no-cache-dir -r requirements.txt",
    ]
    context = tmp_path / "context"
    for name in ("requirements.txt", "train.py", "data/one.bin", "data/deep/two.bin"):
        (context / name).parent.mkdir(parents=True, exist_ok=True)
        (context / name).write_text(name)
    files = put_aside(recipe, context, tmp_path / "store")
    assert {target: Path(kept).read_text() for target, kept in files.items()} == {
        "/workspace/requirements.txt": "requirements.txt",
        "/workspace/train.py": "train.py",
        "/workspace/data/one.bin": "data/one.bin",
        "/workspace/data/deep/two.bin": "data/deep/two.bin",
    }
    entry = dockerfile.entry("me/app", recipe, "torch", files)
    assert entry["match"] == ["me/app"]
    assert entry["environment"] == "torch"
    assert entry["files"] == files


def test_the_last_stage_is_the_image() -> None:
    recipe = parse("FROM golang AS build\nENV A=1\nFROM --platform=linux/amd64 python:3.12 AS last\nCMD run me\n")
    assert (recipe.base, recipe.env, recipe.cmd) == ("python:3.12", {}, ["/bin/sh", "-c", "run me"])


def test_variables() -> None:
    text = (
        "ARG VERSION=3.12\nFROM python:${VERSION}\nARG VERSION\nENV HOME_DIR=/srv NAME='a b' V=$VERSION\n"
        "ENV OLD form of it\nWORKDIR $HOME_DIR/${NONE:-app}\nENV PATH=/opt/bin:$PATH COST=\\$5\n"
    )
    recipe = parse(text)
    assert recipe.base == "python:3.12"
    assert recipe.workdir == "/srv/app"
    assert recipe.env["NAME"] == "a b"
    assert recipe.env["V"] == "3.12"
    assert recipe.env["OLD"] == "form of it"
    image = CatalogueImage("x", Environment("host", {}), env=recipe.env)
    assert image.variables()["PATH"].startswith("/opt/bin:/")
    assert "$" not in image.variables()["PATH"]


def test_commands() -> None:
    recipe = parse('FROM x\nCMD ["a"]\nENTRYPOINT ["b", "c"]\n')
    assert (recipe.entrypoint, recipe.cmd) == (["b", "c"], [])
    assert parse('FROM x\nCMD [not json, but "a line"]\n').cmd == ["/bin/sh", "-c", '[not json, but "a line"]']


def test_where_copies_go() -> None:
    text = 'FROM x\nWORKDIR /w\nCOPY a b\nCOPY a b/\nCOPY a c ./d\nCOPY --chown=1:1 ["a b", "/e"]\nADD a ../f\n'
    assert parse(text).copies == [
        Copy("a", "/w/b", False), Copy("a", "/w/b", True), Copy("a", "/w/d", True), Copy("c", "/w/d", True),
        Copy("a b", "/e", False), Copy("a", "/f", False),
    ]  # fmt: skip


@pytest.fixture
def context(tmp_path: Path) -> Path:
    folder = tmp_path / "context"
    for name in ("a.py", "b.py", "notes.md", "secret/key", "pkg/__init__.py", "pkg/cache/x.pyc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def targets(text: str, context: Path, tmp_path: Path) -> list[str]:
    return sorted(put_aside(parse(f"FROM x\nWORKDIR /w\n{text}\n"), context, tmp_path / "store"))


def test_patterns_folders_and_ignored_files(context: Path, tmp_path: Path) -> None:
    assert targets("COPY *.py /src/", context, tmp_path) == ["/src/a.py", "/src/b.py"]
    assert targets("COPY a.py renamed.py", context, tmp_path) == ["/w/renamed.py"]
    assert targets("COPY pkg /lib/pkg", context, tmp_path) == ["/lib/pkg/__init__.py", "/lib/pkg/cache/x.pyc"]
    (context / ".dockerignore").write_text("# not these\nsecret\n*.md\n**/*.pyc\n!notes.md\n.dockerignore\n")
    assert targets("COPY . .", context, tmp_path) == ["/w/a.py", "/w/b.py", "/w/notes.md", "/w/pkg/__init__.py"]


def test_a_later_copy_wins(context: Path, tmp_path: Path) -> None:
    files = put_aside(parse("FROM x\nCOPY a.py /m.py\nCOPY b.py /m.py\n"), context, tmp_path / "store")
    assert Path(files["/m.py"]).read_text() == "b.py"


def test_nothing_is_taken_from_outside_of_the_context(context: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("private")
    (context / "link").symlink_to(tmp_path / "outside")
    for source in ("../outside", "link", "l*k", "/../outside"):
        with pytest.raises(DockerfileError, match="lies outside of"):
            targets(f"COPY {source} /x", context, tmp_path)
    with pytest.raises(DockerfileError, match=r"nothing\.py is not in"):
        targets("COPY nothing.py /x", context, tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no FROM line"),
        ("# only words\n", "there is no FROM line"),
        ("FROM\n", "line 1: FROM needs an image"),
        ("RUN x\nFROM y\n", "line 1: RUN comes before FROM"),
        ("FROM x\nENV\n", "line 2: ENV needs a name"),
        ("FROM x\nENV A='b\n", "line 2: No closing quotation"),
        ("FROM x\n\nFRY eggs\n", "line 3: FRY is not a Dockerfile instruction"),
        ("FROM x\nCOPY a\n", "line 2: COPY needs a source and a target"),
        ("FROM a AS b\nFROM c\nCOPY --from=b /x /y\n", "line 3: COPY --from another stage is not possible"),
    ],
)
def test_what_cannot_be_used_is_said_with_its_line(text: str, said: str) -> None:
    with pytest.raises(DockerfileError) as problem:
        parse(text)
    assert str(problem.value).startswith(said)


def test_here_documents_and_instructions_without_meaning_here() -> None:
    recipe = parse("FROM x\nRUN <<EOF\napt-get install y\nEOF\nEXPOSE 80\nUSER 5\nHEALTHCHECK NONE\nCMD z\n")
    assert recipe.not_run == ["<<EOF"]
    assert recipe.cmd == ["/bin/sh", "-c", "z"]
