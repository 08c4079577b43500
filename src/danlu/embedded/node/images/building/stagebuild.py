"""One stage of a Dockerfile: its instructions one by one, each looked up in the cache before it is carried out."""

from __future__ import annotations

import posixpath
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from danlu.embedded.node.images.building import buildcache, configwords, expansion, runmounts, runstep, trees
from danlu.embedded.node.images.building.buildcache import BuildCache
from danlu.embedded.node.images.building.builderrors import wrong_line
from danlu.embedded.node.images.building.copystep import Copy, CopyStep, InlineFile, Taken, taken
from danlu.embedded.node.images.building.instructions import Instruction, instruction
from danlu.embedded.node.images.building.layertar import BuiltLayer, FileOwner, LayerTar
from danlu.embedded.node.images.building.runmounts import Mounts, MountSources
from danlu.embedded.node.images.building.runstep import RunCommand, Runner
from danlu.embedded.node.images.building.stagestate import StageState
from danlu.embedded.node.images.building.trees import LayersTree, SourceTree
from danlu.embedded.node.images.imagestore import ImageStore
from danlu.embedded.node.imagesource import UnknownUser

PROXIES = {
    name
    for stem in ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")
    for name in (stem, stem.upper())
}
FORMAT = 1  # of what steps make: another number makes the cache forget
REMOTE = ("http://", "https://", "ftp://", "git://", "git@", "ssh://")
Tell = Callable[[int, str, bool], None]  # line, instruction, whether it came from the cache


@dataclass(frozen=True)
class StageContext:
    """What all stages of a build share."""

    store: ImageStore
    cache: BuildCache
    runner: Runner
    epoch: int
    created: str
    arguments: Mapping[str, str]  # --build-arg
    outer: Mapping[str, str]  # ARG before the first FROM, and what is always known
    secrets: Mapping[str, Path]
    source_tree: Callable[[str, int], SourceTree]  # of --from, "" the context
    tell: Tell
    used: set[str]  # of `arguments`, those that something asked for


class StageBuild:
    def __init__(self, state: StageState, context: StageContext) -> None:
        self.state = state
        self._context = context
        proxies = {name: value for name, value in context.arguments.items() if name in PROXIES}
        self._proxies = proxies
        context.used.update(proxies)

    def run(self, instructions: list[Instruction]) -> None:
        """Raises BuildError, OSError."""
        triggers = self.state.config.pop("OnBuild", None) or []
        first = instructions[0].line if instructions else 0
        for text in triggers:
            self._one(instruction(str(text), first))
        for one in instructions:
            self._one(one)

    def trees(self) -> list[Path]:
        """The folders of the layers so far, the lowest first."""
        store = self._context.store
        return [store.unpack_layer(str(about["digest"]), diff_id) for about, diff_id in self.state.layers]

    def _one(self, one: Instruction) -> None:
        work = {"RUN": self._run, "COPY": self._copy, "ADD": self._copy, "WORKDIR": self._work_folder,
                "ARG": self._argument}.get(one.word)  # fmt: skip
        if work is not None:
            work(one)
        else:
            configwords.WORDS[one.word](self.state, one)
            self._done(one, [], cached=True)

    def _done(self, one: Instruction, layers: list[BuiltLayer], *, cached: bool) -> None:
        self.state.record(str(one), self._context.created, layers)
        self._context.tell(one.line, str(one), cached)

    def _step(self, one: Instruction, made_from: object, work: Callable[[], list[BuiltLayer]]) -> None:
        """From the cache, or by doing it."""
        context = self._context
        key = buildcache.key(FORMAT, self.state.chain, context.epoch, one.word, made_from)
        layers = context.cache.find(key)
        cached = layers is not None
        if layers is None:
            context.tell(one.line, str(one), False)
            layers = work()
            context.cache.keep(key, layers)
            self.state.record(str(one), context.created, layers)
        else:
            self._done(one, layers, cached=cached)

    # -- ARG and WORKDIR

    def _argument(self, one: Instruction) -> None:
        for word in one.rest.split() if '"' not in one.rest and "'" not in one.rest else [one.rest]:
            name, equals, default = word.partition("=")
            if not expansion.NAME.fullmatch(name):
                raise wrong_line(one.line, f"{name[:40]!r} is not a name")
            if name in self._context.arguments:
                self._context.used.add(name)
                self.state.arguments[name] = self._context.arguments[name]
            elif equals:
                self.state.arguments[name] = self.state.expand(default, one.line)
            elif name in self._context.outer:
                self.state.arguments[name] = self._context.outer[name]
        self._done(one, [], cached=True)

    def _work_folder(self, one: Instruction) -> None:
        stated = self.state.expand(one.rest, one.line)
        path = posixpath.normpath(posixpath.join("/", self.state.cwd, stated))
        self.state.config["WorkingDir"] = path
        self._step(one, path, lambda: self._made_folder(path, one.line))

    def _made_folder(self, path: str, line: int) -> list[BuiltLayer]:
        tree = LayersTree(self.trees())
        found = tree.resolve(path.strip("/"))
        kind = trees.kind(tree.host(found))
        if kind == stat.S_IFDIR or not found:
            return []
        if kind:
            raise wrong_line(line, f"{path} is not a folder")
        nothing = Copy(line, (), "/" + found, into=True, unpacks=False)
        with LayerTar(self._context.store, self._context.epoch) as tar:
            CopyStep(nothing, tree, self._context.store, self._context.epoch).make_folder(tar)
            return [tar.finish()]

    # -- COPY and ADD

    def _copy(self, one: Instruction) -> None:
        one.only_flags(*(("from",) if one.word == "COPY" else ()), "chown", "chmod", "link")
        words = one.json_words() or self.state.words(one.rest, one.line)
        words = [self.state.expand(word, one.line) for word in words] if one.rest.startswith("[") else words
        if len(words) < 2:
            raise wrong_line(one.line, f"{one.word} needs a source and a target")
        *sources, target = words
        into = target.endswith(("/", "/.")) or target in (".", "..") or len(sources) > 1
        stage = self.state.expand(one.flag("from"), one.line)
        tree = self._context.source_tree(stage, one.line)
        found: list[Taken | InlineFile] = []
        for source in sources:
            found += self._source(one, source, tree, stage)
        path = posixpath.normpath(posixpath.join("/", self.state.cwd, target))
        into = into or len(found) > 1
        whose = self.state.expand(one.flag("chown"), one.line)
        mode = _mode(self.state.expand(one.flag("chmod"), one.line), one.line)
        asked = Copy(one.line, tuple(found), path, into, one.word == "ADD", mode)
        made_from = [asked.digest(), path, into, whose, mode]
        self._step(one, made_from, lambda: self._copied(asked, whose))

    def _source(self, one: Instruction, source: str, tree: SourceTree, stage: str) -> list[Taken | InlineFile]:
        for heredoc in one.heredocs:
            if source.lstrip("-<").strip("\"'") == heredoc.name and source.startswith("<<"):
                text = heredoc.text if heredoc.is_literal else self._expanded(heredoc.text, one.line)
                return [InlineFile(heredoc.name, text.encode())]
        if source.startswith(REMOTE):
            raise wrong_line(
                one.line,
                f"{source[:80]} is not fetched by {one.word} here: fetch it with RUN, so that you see what came",
            )
        return [*taken(tree, source, one.line, stage or "the context")]

    def _expanded(self, text: str, line: int) -> str:
        """Of a here-document: variables count, quotes do not."""
        quoted = text.replace("'", "\0q").replace('"', "\0d")
        return self.state.expand(quoted, line).replace("\0q", "'").replace("\0d", '"')

    def _copied(self, asked: Copy, whose: str) -> list[BuiltLayer]:
        layers = self.trees()
        owner = self._owner(layers, whose, asked.line) if whose else None
        copy = Copy(asked.line, asked.sources, asked.target, asked.into, asked.unpacks, asked.mode, owner)
        return [CopyStep(copy, LayersTree(layers), self._context.store, self._context.epoch).run()]

    def _owner(self, layers: list[Path], whose: str, line: int) -> FileOwner:
        user, colon, _ = whose.partition(":")
        if user.isdigit() and not colon:
            return FileOwner(int(user), int(user))
        try:
            found = runstep.account(layers, whose)
        except UnknownUser as error:
            raise wrong_line(line, error) from None
        return FileOwner(found.uid, found.gid)

    # -- RUN

    def _run(self, one: Instruction) -> None:
        one.only_flags("mount", "network", "security")
        for name, only in (("network", "default"), ("security", "sandbox")):
            if one.flag(name, only) not in (only, "host"):
                raise wrong_line(one.line, f"--{name}={one.flag(name)} cannot be had here")
        sources = MountSources(self._context.cache, self._context.secrets, self._context.source_tree, self.state.cwd)
        stated = [self.state.expand(value, one.line) for name, value in one.flags if name == "mount"]
        requests = [runmounts.parse(text, one.line) for text in stated]
        argv, env = self._argv(one), self._variables()
        made_from = [
            argv, env, self.state.cwd, self.state.user,
            [runmounts.fingerprint(request, sources) for request in requests],
        ]  # fmt: skip
        self._step(one, made_from, lambda: [self._carried_out(one, argv, env, requests, sources)])

    def _argv(self, one: Instruction) -> list[str]:
        words = one.json_words()
        if words is not None:
            if not words:
                raise wrong_line(one.line, "RUN needs a command")
            return words
        if not one.heredocs:
            return [*self.state.shell, one.rest]
        only = one.heredocs[0]
        if len(one.heredocs) == 1 and one.rest.lstrip("<-").strip("\"'") == only.name:
            if only.text.startswith("#!"):
                interpreter = only.text[2:].split("\n", 1)[0].split()
                return [*interpreter, "-c", only.text]  # as sh, bash, python3 and most others have it
            return [*self.state.shell, only.text]
        documents = "".join(f"{heredoc.text}{heredoc.name}\n" for heredoc in one.heredocs)
        return [*self.state.shell, f"{one.rest}\n{documents}"]

    def _variables(self) -> dict[str, str]:
        """Those of ARG are the command's, too; ENV goes before them."""
        return {**self._proxies, "SOURCE_DATE_EPOCH": str(self._context.epoch), **self.state.values}

    def _carried_out(
        self, one: Instruction, argv: list[str], env: dict[str, str], requests: list[runmounts.MountRequest],
        sources: MountSources,
    ) -> BuiltLayer:  # fmt: skip
        layers, runner = self.trees(), self._context.runner
        try:
            account = runstep.account(layers, self.state.user)
        except UnknownUser as error:
            raise wrong_line(one.line, error) from None
        with runner.folder() as folder, Mounts(requests, sources, folder).made() as mounts:
            env = {"HOME": account.home, **env, **mounts.env}
            command = RunCommand(one.line, one.rest, argv, env, self.state.cwd, account, mounts.binds)
            return runner.run(command, layers, self.state.base.machine, folder)


def _mode(text: str, line: int) -> int | None:
    if not text:
        return None
    try:
        return int(text, 8) & 0o7777
    except ValueError:
        raise wrong_line(line, f"--chmod={text[:20]} is not an octal number") from None
