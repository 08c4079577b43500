"""What is said of a wrong command line, in both languages; and how commands below a word are found."""

from __future__ import annotations

import pytest

from danlu.cli.language import speaking
from danlu.cli.main import main

WRONG = [
    ("fly", "there is no command 'fly'; `danlu --help` lists them", "没有 'fly' 这个命令；`danlu --help` 列出全部"),
    ("up --porrt 1", "there is no option --porrt, perhaps --port", "没有 --porrt 这个选项，您指的可能是 --port"),
    ("up --port", "--port needs a value; `danlu up --help` tells more", "--port 需要一个值；详见 `danlu up --help`"),
    ("up --port x", "--port: 'x' is not a whole number", "--port: 'x' 不是整数"),
    ("up --detach=1", "--detach takes no value", "--detach 不接受值"),
    ("up x", "unexpected: x", "多余的参数：x"),
    (
        "up --images some",
        "--images: 'some' is none of lenient, strict",
        "--images: 'some' 不在可选值之列：lenient, strict",
    ),
    ("backup", "FILE is missing; `danlu backup --help` tells more", "缺少 FILE；详见 `danlu backup --help`"),
    ("encryption turn", "status|rotate: 'turn' is none of", "status|rotate: 'turn' 不在可选值之列"),
    ("images bild", "there is no command 'bild', perhaps build", "没有 'bild' 这个命令，您指的可能是 build"),
    (
        "images --tag x",
        "there is no option --tag; `danlu images --help`",
        "没有 --tag 这个选项；详见 `danlu images --help`",
    ),
    ("images build --xyz", "there is no option --xyz; `danlu images build --help`", "没有 --xyz 这个选项"),
    ("install --timeout soon", "--timeout: 'soon' is not a number", "--timeout: 'soon' 不是数字"),
]


@pytest.mark.parametrize(("line", "english", "chinese"), WRONG, ids=[line for line, *_ in WRONG])
def test_a_wrong_line_is_told_in_one(line: str, english: str, chinese: str, capsys: pytest.CaptureFixture[str]) -> None:
    for language, said in (("en", english), ("zh", chinese)):
        with speaking(language), pytest.raises(SystemExit) as ended:
            main(line.split())
        assert ended.value.code == 2
        heard = capsys.readouterr()
        assert heard.out == ""
        assert heard.err.startswith(f"danlu: {said}")
        assert heard.err.count("\n") == 1


def test_a_word_before_the_command_is_the_commands(capsys: pytest.CaptureFixture[str], tmp_path: object) -> None:
    lines = ["images", "images list", f"images --data-dir {tmp_path} list", f"images list --data-dir {tmp_path}"]
    said = []
    for line in lines:
        with pytest.raises(SystemExit) as ended:
            main(line.split())
        assert ended.value.code == 0
        said.append(capsys.readouterr().out.splitlines()[-1])
    assert said[0] == said[1]
    assert said[2] == said[3]
    assert str(tmp_path) in said[2]


def test_help_comes_by_either_word(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for line in ("images build --help", "help images build", "images build -h"):
        with pytest.raises(SystemExit) as ended:
            main(line.split())
        assert ended.value.code == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] == said[2]
    assert said[0].startswith("usage: danlu images build [OPTIONS] [ENVIRONMENT|FOLDER]\n")
