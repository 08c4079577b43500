"""`danlu images build torch`: an environment of the catalogue. `danlu images build -t NAME [-f FILE] FOLDER`: what
`docker build` would be, an entry made from a Dockerfile."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from danlu.cli.command import CommandOptions, argument, option
from danlu.cli.failures import CommandError, UsageError
from danlu.cli.language import Count, Text, translated
from danlu.cli.local.images.environmentlookup import MACHINE_TOOLS, environment_called, image_errors
from danlu.cli.place import data_directory
from danlu.cli.progressline import ProgressLine
from danlu.cli.valuetypes import PATH
from danlu.environments import dockerfile, userimages
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
NOT_RUN = Text("not run: {line}", "没有执行：{line}")
NOTE = Text("note: {note}", "注意：{note}")
MADE = Text(
    "{tag}: environment {environment}, {count:file|files} of {folder}; nothing has to be pushed",
    "{tag}：环境 {environment}，{folder} 中的 {count} 个文件；无需推送",
)


@dataclass(frozen=True)
class Options(CommandOptions):
    target: str | None = argument(
        "ENVIRONMENT|FOLDER",
        default=None,
        help=Text(
            "an environment of the catalogue, or with -t the folder of a Dockerfile",
            "目录中的环境；加 -t 则为 Dockerfile 所在的目录",
        ),
    )
    tag: str | None = option(
        "-t",
        "--tag",
        metavar="NAME",
        help=Text("the image's name, as in `docker build -t`", "镜像名，与 `docker build -t` 相同"),
    )
    file: Path | None = option(
        "-f",
        "--file",
        metavar="FILE",
        type=PATH,
        help=Text("the Dockerfile (default: FOLDER/Dockerfile)", "Dockerfile 的路径（默认 FOLDER/Dockerfile）"),
    )


@image_errors
def run(options: Options) -> int:
    root = data_directory(options).root
    if not options.target:
        raise UsageError(NEEDS())
    if options.tag:
        return _from_dockerfile(root, options.tag, Path(options.target), options.file)
    return _build(Catalogue(root), options.target)


def _build(catalogue: Catalogue, name: str) -> int:
    environment = environment_called(catalogue, name)
    if environment.is_built:
        print(READY(name=name, folder=environment.folder or MACHINE_TOOLS()))
        return 0
    bar = ProgressLine(BUILDING(name=name))
    folder = build(environment, bar.show)
    bar.done(BUILT(name=name, folder=folder))
    return 0


def _from_dockerfile(root: Path, tag: str, context: Path, chosen: Path | None) -> int:
    file = chosen or context / "Dockerfile"
    try:
        built = userimages.build(root, tag, file, context)
    except FileNotFoundError as error:
        raise CommandError(NO_FILE(file=error.filename or file)) from error
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or NO_TEXT()
        raise CommandError(UNREADABLE(file=file, problem=problem)) from error
    except dockerfile.DockerfileError as error:
        raise CommandError(f"{file}: {translated(error)}") from error
    for line in built.not_run:
        print(NOT_RUN(line=line[:100]), file=sys.stderr)
    if built.note:
        print(NOTE(note=translated(built.note)), file=sys.stderr)
    print(MADE(tag=tag, environment=built.environment, count=Count(built.files), folder=context))
    return 0
