"""`danlu images build torch`: an environment of the catalogue. `danlu images build -t NAME FOLDER`: `docker build`."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from danlu.cli.command import CommandOptions, argument, flag, option
from danlu.cli.failures import CommandError, UsageError
from danlu.cli.language import Text, translated
from danlu.cli.local.images.environmentlookup import MACHINE_TOOLS, environment_called, image_errors
from danlu.cli.local.images.storelookup import store_of
from danlu.cli.place import data_directory
from danlu.cli.progressline import ProgressLine
from danlu.cli.valuetypes import PATH
from danlu.environments.catalogue import Catalogue, build

NEEDS = Text(
    "images build needs an environment, or -t NAME and a folder; `danlu images` lists them",
    "images build 需要一个环境，或 -t NAME 和一个目录；`danlu images` 列出环境",
)
READY = Text("environment {name} is ready: {folder}", "环境 {name} 已就绪：{folder}")
BUILDING = Text("building environment {name}", "正在构建环境 {name}")
BUILT = Text("environment {name} is built: {folder}", "环境 {name} 已构建：{folder}")
NO_FILE = Text("there is no {file}; name the Dockerfile with -f", "没有 {file}；请用 -f 指定 Dockerfile")
UNREADABLE = Text("{file} cannot be read: {problem}", "无法读取 {file}：{problem}")
NO_TEXT = Text("it is not text", "它不是文本")
NOTE = Text("note: {note}", "注意：{note}")
FAILED = Text("{file}: {problem}", "{file}：{problem}")
STEP = Text("line {line}: {text}", "第 {line} 行：{text}")
CACHED = Text("line {line}: {text} (as before)", "第 {line} 行：{text}（同前）")
MADE = Text("{tag}: {digest}", "{tag}：{digest}")
MADE_HERE = Text(
    "{tag}: {digest}, on the environment {environment} of this machine",
    "{tag}：{digest}，基于本机的环境 {environment}",
)
UNUSED = Text("--build-arg {name}: no ARG asks for it", "--build-arg {name}：没有 ARG 使用它")
BAD_ARGUMENT = Text("--build-arg {word} is not NAME=VALUE", "--build-arg {word} 不是 NAME=VALUE 形式")
BAD_SECRET = Text(
    "--secret {word} needs id=NAME and src=FILE or env=NAME", "--secret {word} 需要 id=NAME 以及 src=FILE 或 env=NAME"
)
NO_SECRET = Text("--secret {name}: {file} cannot be read", "--secret {name}：无法读取 {file}")
LONGEST = 160  # letters of an instruction that are shown


@dataclass(frozen=True)
class Options(CommandOptions):
    target: str | None = argument(
        "ENVIRONMENT|FOLDER",
        default=None,
        help=Text(
            "an environment of the catalogue, or with -t the folder that COPY takes from",
            "目录中的环境；加 -t 则为 COPY 所用的目录",
        ),
    )
    tags: tuple[str, ...] = option(
        "-t",
        "--tag",
        metavar="NAME",
        multiple=True,
        help=Text("the image's name, as in `docker build -t`", "镜像名，与 `docker build -t` 相同"),
    )
    file: Path | None = option(
        "-f",
        "--file",
        metavar="FILE",
        type=PATH,
        help=Text("the Dockerfile (default: FOLDER/Dockerfile)", "Dockerfile 的路径（默认 FOLDER/Dockerfile）"),
    )
    arguments: tuple[str, ...] = option(
        "--build-arg", metavar="NAME=VALUE", multiple=True, help=Text("a value for an ARG", "为 ARG 赋值")
    )
    stage: str | None = option(
        "--target", metavar="STAGE", help=Text("build this stage, not the last", "构建指定阶段而非最后阶段")
    )
    no_cache: bool = flag(
        "--no-cache", help=Text("carry out every step, whatever an earlier build has made", "不使用缓存，执行每一步")
    )
    secrets: tuple[str, ...] = option(
        "--secret",
        metavar="id=NAME,src=FILE",
        multiple=True,
        help=Text(
            "for RUN --mount=type=secret; it does not get into the image",
            "供 RUN --mount=type=secret 使用，不会进入镜像",
        ),
    )


@image_errors
def run(options: Options) -> int:
    if not options.target:
        raise UsageError(NEEDS())
    if not options.tags:
        return _build(Catalogue(data_directory(options).root), options.target)
    return _from_dockerfile(options, Path(options.target))


def _build(catalogue: Catalogue, name: str) -> int:
    environment = environment_called(catalogue, name)
    if environment.is_built:
        print(READY(name=name, folder=environment.folder or MACHINE_TOOLS()))
        return 0
    bar = ProgressLine(BUILDING(name=name))
    folder = build(environment, bar.show)
    bar.done(BUILT(name=name, folder=folder))
    return 0


def _from_dockerfile(options: Options, context: Path) -> int:
    from danlu.embedded.node.images.building.imagebuilder import BuildRequest, ImageBuilder
    from danlu.embedded.node.imagesource import ImageError

    file = options.file or context / "Dockerfile"
    root = store_of(options).root.parent
    with tempfile.TemporaryDirectory() as folder:
        request = BuildRequest(
            file,
            context,
            options.tags,
            _arguments(options.arguments),
            options.stage or "",
            not options.no_cache,
            _secrets(options.secrets, Path(folder)),
        )
        try:
            built = ImageBuilder(root, Catalogue(root), show=_show, tell=_tell).build(request)
        except FileNotFoundError as error:
            raise CommandError(NO_FILE(file=error.filename or file)) from error
        except (OSError, UnicodeDecodeError) as error:
            problem = getattr(error, "strerror", None) or NO_TEXT()
            raise CommandError(UNREADABLE(file=getattr(error, "filename", None) or file, problem=problem)) from error
        except ImageError as error:
            raise CommandError(FAILED(file=file, problem=translated(error))) from error
    for note in built.notes:
        print(NOTE(note=translated(note)), file=sys.stderr)
    for name in built.unused:
        print(UNUSED(name=name), file=sys.stderr)
    for tag in options.tags:
        told = MADE_HERE if built.environment else MADE
        print(told(tag=tag, digest=built.digest, environment=built.environment))
    return 0


def _show(data: bytes) -> None:
    """What a step prints is no result of this command."""
    sys.stderr.write(data.decode(errors="replace"))
    sys.stderr.flush()


def _tell(line: int, text: str, cached: bool) -> None:
    print((CACHED if cached else STEP)(line=line, text=text[:LONGEST]), file=sys.stderr, flush=True)


def _arguments(words: tuple[str, ...]) -> dict[str, str]:
    """NAME alone takes the value of the environment, as docker does."""
    import os

    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name:
            raise UsageError(BAD_ARGUMENT(word=word))
        if equals:
            found[name] = value
        elif name in os.environ:
            found[name] = os.environ[name]
    return found


def _secrets(words: tuple[str, ...], folder: Path) -> dict[str, Path]:
    import os

    found: dict[str, Path] = {}
    for word in words:
        parts = dict(part.partition("=")[::2] for part in word.split(","))
        name, source = parts.get("id", ""), parts.get("src") or parts.get("source") or ""
        variable = parts.get("env") or ("" if source else name)
        if not name:
            raise UsageError(BAD_SECRET(word=word))
        path = Path(source).expanduser()
        if not source and variable in os.environ:
            path = folder / str(len(found))
            path.touch(mode=0o600)
            path.write_text(os.environ[variable])
        if (not source and variable not in os.environ) or not os.access(path, os.R_OK) or not path.is_file():
            raise UsageError(NO_SECRET(name=name, file=source or f"${variable}"))
        found[name] = path
    return found
