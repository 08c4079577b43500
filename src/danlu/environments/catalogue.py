"""From an image's name to a local environment, through a catalogue: the node's `ImageSource`.

An image name stands for programs that a pod expects to find; the catalogue says which environment of this machine has
them: images.yaml beside this file, and DATA/images.yaml of the user, which is asked first. What it does not know, and
what is not built, the node pulls (`node/images`). Where that cannot be had, a name that nobody knows runs in the
default environment, and an event says so; with `--images strict` it cannot be pulled.

Environments with requirements are virtual environments under ~/.cache/danlu/environments/<name>-<hash>, made once for
each account by `build`, and used by all data directories. What `sharing` has put into /var/cache/danlu serves every
account of the machine that has not built its own.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import danlu
from danlu.diagnose import say, stated
from danlu.embedded.node import imagesource
from danlu.embedded.node.imagesource import DEFAULT_PATH, ENVIRONMENT, IMAGE, ImageError, repository

DEFAULT = "default"
SHARED_CACHE = Path("/var/cache/danlu")  # for all accounts; only an administrator can have made it
COMPLETE = "complete.txt"  # in a built environment: its packages; written last
Progress = Callable[[str], None]
PROGRAMS = "/opt/danlu/bin/"  # in a container: what the catalogue puts in front of an environment's own programs
DATA_PLACE = "/danlu/data"  # in a container: the machine's data sets, read-only
TAG_VERSION = re.compile(r":v?(\d+(?:\.\d+)*)(?=$|[-+_@])")  # the version that an image's tag begins with
# Libraries ask the machine for its cores, not the limit: workers that share a machine would trample each other.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMEXPR_MAX_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)


@dataclass(frozen=True, slots=True)
class Environment:
    name: str
    env: dict[str, str]
    requirements: tuple[str, ...] = ()
    python: str = ""  # "own": Danlu's interpreter; or the folder of a virtual environment
    # All of them and what they need, by digest. The requirements alone say which environment it is: another lock file
    # for the same ones is used by the next build.
    lock: Path | None = None

    @property
    def folder(self) -> Path | None:
        """Where its Python lives, built or not; None when it has none of its own."""
        if self.requirements:
            name = f"{self.name}-{self.digest[:12]}"
            own, shared = cache_folder() / name, SHARED_CACHE / "environments" / name
            return own if not _is_complete(shared) or _is_complete(own) else shared
        if self.python == "own":
            return Path(sys.prefix)
        return Path(self.python).expanduser() if self.python else None

    @property
    def digest(self) -> str:
        stated = "\n".join((*self.requirements, f"python {sys.version_info[0]}.{sys.version_info[1]}"))
        return hashlib.sha256(stated.encode()).hexdigest()

    @property
    def content_digest(self) -> str:
        """Of its lock file, too."""
        try:
            locked = self.lock.read_bytes() if self.lock else b""
        except OSError:
            locked = b""
        return f"sha256:{hashlib.sha256(self.digest.encode() + locked).hexdigest()}"

    def version_of(self, program: str) -> str:
        """Of what it has; "" when that is not known."""
        if program == "python":
            return ".".join(map(str, sys.version_info[:3])) if self.python == "own" or self.requirements else ""
        pinned = (one.partition("==") for one in self.requirements)
        return next((version for name, _, version in pinned if name.partition("[")[0] == program), "")

    @property
    def is_built(self) -> bool:
        return not self.requirements or (self.folder is not None and _is_complete(self.folder))


@dataclass(frozen=True, slots=True)
class CatalogueImage:
    """What the catalogue says of one image."""

    name: str
    environment: Environment
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    files: dict[str, str] = field(default_factory=dict)  # target -> source, copied into the writable layer
    known: bool = True  # in a catalogue, so that its entrypoint and cmd are what they are
    remedy: str = ""  # where nothing is known of it: what would change that
    note: str = ""  # why something else than the image itself runs; "" when the catalogue knows it
    fallback: bool = False  # nothing that is here stands for it
    differs: str = ""  # how what runs is not quite what its name says

    @property
    def id(self) -> str:
        digest = hashlib.sha256(f"{self.name}\n{self.environment.name}\n{self.environment.digest}".encode())
        return f"{repository(self.name)}@sha256:{digest.hexdigest()}"

    def variables(self) -> dict[str, str]:
        """The image's own environment variables; PATH leads to the environment's programs first."""
        folders = []
        folder = self.environment.folder
        if folder is not None:
            folders.append(f"{folder}/bin")
        folders.append(DEFAULT_PATH)
        own = f"{sys.prefix}/bin"
        if own not in folders:
            folders.append(own)  # so that python3 is found even where the host has none
        found = {"PATH": ":".join(folders), "DANLU_IMAGE": self.name, "LANG": "C.UTF-8"}
        if folder is not None and self.environment.requirements:
            found["VIRTUAL_ENV"] = str(folder)
        extra = {name: value.replace("$PATH", found["PATH"]) for name, value in self.env.items()}
        return found | self.environment.env | extra

    def image(self) -> imagesource.Image:
        """As the node runs it, with the data sets of this machine in reach."""
        env, folders = self.variables(), {path: path for path in self.paths()}
        data = data_folder()
        if data.is_dir():
            env["DANLU_DATA"] = DATA_PLACE
            folders[DATA_PLACE] = str(data)
        return imagesource.Image(
            self.name,
            self.id,
            self.entrypoint,
            self.cmd,
            env,
            self.workdir,
            self.files,
            folders,
            THREAD_VARIABLES,
            self.known,
            self.remedy,
            self.note,
            environment=self.environment.name,
            environment_digest=self.environment.content_digest,
            python=str(self.environment.folder or ""),
            fallback=self.fallback,
            differs=self.differs,
        )

    def paths(self) -> list[str]:
        """Folders of the host that its programs need, beyond the system's."""
        folder = self.environment.folder
        found = {*python_paths(folder)} if folder is not None else set()
        if self.environment.python == "own" or shutil.which("python3", path=DEFAULT_PATH) is None:
            # Danlu itself may lie outside its environment (an editable install): programs in pods use its SDK.
            found |= {*python_paths(Path(sys.prefix)), os.path.dirname(danlu.__file__)}
        kept: list[str] = []
        for path in sorted(found):
            if not any(path == other or path.startswith(other + "/") for other in kept):
                kept.append(path)
        return kept


def python_paths(prefix: Path) -> list[str]:
    """A Python's own folder and that of the interpreter it was made from."""
    found = [os.path.realpath(prefix), str(prefix)]
    try:
        for line in (prefix / "pyvenv.cfg").read_text().splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "home":
                found.append(os.path.dirname(os.path.realpath(value.strip())))
    except OSError:
        found.append(os.path.realpath(sys.base_prefix))
    return [path for path in dict.fromkeys(found) if not path.startswith(("/usr", "/opt/")) and path != "/"]


def cache() -> Path:
    """This account's, or the one that $DANLU_CACHE names; where it really lies, for programs that are built there have
    the path in their first line, and a pod has the folder and no link that leads to it."""
    if named := os.environ.get("DANLU_CACHE"):
        return Path(named).expanduser().resolve()
    return (Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "danlu").resolve()


def cache_folder() -> Path:
    return cache() / "environments"


def _is_complete(folder: Path) -> bool:
    try:
        return (folder / COMPLETE).exists()
    except PermissionError:  # another account's home
        return False


def spellings(name: str) -> list[str]:
    """The forms of a name that a pattern may match."""
    bare = repository(name)
    first, slash, rest = bare.partition("/")
    is_registry = slash and ("." in first or ":" in first or first == "localhost")
    short = rest if is_registry else bare
    return [name, bare, short, short.rpartition("/")[2]]


class Catalogue:
    """The two files, read again when the user's has changed."""

    def __init__(self, data_dir: Path, *, strict: bool = False) -> None:
        self.strict = strict
        self._data_dir = data_dir
        self._user_file = data_dir / "images.yaml"
        self._user_stamp = -1.0
        self._user: dict[str, Any] = {}

    @cached_property
    def _built_in(self) -> dict[str, Any]:
        return _read(Path(__file__).with_name("images.yaml"))

    @cached_property
    def _built_in_images(self) -> list[dict[str, Any]]:
        return [_located(entry, Path(__file__).parent) for entry in self._built_in.get("images") or ()]

    def environments(self) -> dict[str, Environment]:
        found = {}
        for source, folder in ((self._built_in, Path(__file__).parent), (self._of_user(), self._user_file.parent)):
            for name, entry in (source.get("environments") or {}).items():
                found[name] = _environment(name, entry or {}, folder)
        return found

    def entries(self) -> list[dict[str, Any]]:
        """All image entries, in the order in which they are asked."""
        own = [_located(entry, self._user_file.parent) for entry in self._of_user().get("images") or ()]
        return own + self._built_in_images

    def prepare(self) -> None:
        self.environments()

    def resolve(self, name: str) -> imagesource.Image:
        return self.find(name).image()

    def preference(self, name: str, namespace: str) -> str:
        """The first rule of images.yaml that fits both: `prefer: [{image, namespace, use}]`."""
        rules = self._of_user().get("prefer") or ()
        if not isinstance(rules, list | tuple) or not all(isinstance(rule, dict) for rule in rules):
            raise ImageError(stated("DL-PREFER-RULES", file=str(self._user_file)))
        forms = spellings(name)
        for rule in rules:
            of_image = _fits(rule.get("image"), forms)
            if of_image and _fits(rule.get("namespace"), [namespace]):
                wanted = str(rule.get("use") or "")
                if wanted not in (ENVIRONMENT, IMAGE):
                    raise ImageError(stated("DL-PREFER-RULES", file=str(self._user_file)))
                return wanted
        return ""

    def remove_unused(self) -> None:
        try:
            named = self._user_file.read_text()
        except FileNotFoundError:
            named = ""
        except (OSError, ValueError):
            return  # what cannot be read may name any of them
        try:
            kept = [folder for folder in (self._data_dir / "images").iterdir() if folder.is_dir()]
        except OSError:
            return
        for folder in kept:
            if folder.name not in named:
                shutil.rmtree(folder, ignore_errors=True)

    def find(self, name: str) -> CatalogueImage:
        """Raises ImageError in strict mode when nothing real stands behind the name."""
        forms = spellings(name)
        for entry in self.entries():
            if any(fnmatchcase(form, pattern) for pattern in entry.get("match") or () for form in forms):
                return self._image(name, entry)
        if self.strict:
            raise ImageError(say("DL-IMAGE-NOT-LISTED", image=name, file=str(self._user_file)))
        note = stated("DL-IMAGE-UNKNOWN", image=name, environment=DEFAULT)
        remedy = stated("DL-DESCRIBE-IMAGE", file=str(self._user_file))
        environment = self.environments()[DEFAULT]
        return CatalogueImage(name, environment, known=False, remedy=remedy, note=note, fallback=True)

    def _image(self, name: str, entry: dict[str, Any]) -> CatalogueImage:
        environments = self.environments()
        wanted = entry.get("environment") or DEFAULT
        environment = environments.get(wanted)
        if environment is None:
            raise ImageError(stated("DL-ENVIRONMENT-UNDESCRIBED", image=name, wanted=wanted))
        note, fallback, files = "", False, dict(entry.get("files") or {})
        if not environment.is_built:
            fallback = True
            # A program of what is not there would only hide that it is not there.
            files = {target: source for target, source in files.items() if not target.startswith(PROGRAMS)}
            if self.strict:
                raise ImageError(say("DL-ENVIRONMENT-NOT-BUILT", image=name, wanted=wanted))
            note = say("DL-IMAGE-NOT-BUILT", image=name, environment=DEFAULT, wanted=wanted)
            extra = environment.env
            environment = environments[DEFAULT]
            environment = Environment(environment.name, {**environment.env, **extra}, (), environment.python)
        guess = bool(entry.get("guess"))
        return CatalogueImage(
            name,
            environment,
            tuple(entry.get("entrypoint") or ()),
            tuple(entry.get("cmd") or ()),
            {key: str(value) for key, value in (entry.get("env") or {}).items()},
            entry.get("workdir") or "/",
            files,
            known=not guess,
            remedy=stated("DL-DESCRIBE-IMAGE", file=str(self._user_file)) if guess else "",
            note=note,
            fallback=fallback,
            differs="" if note else _difference(name, environment, entry),
        )

    def _of_user(self) -> dict[str, Any]:
        try:
            stamp = self._user_file.stat().st_mtime
        except OSError:
            return {}
        if stamp != self._user_stamp:
            self._user, self._user_stamp = _read(self._user_file), stamp
        return self._user


def _difference(name: str, environment: Environment, entry: dict[str, Any]) -> str:
    """That another version runs than the tag names, or that the name only looks like it; "" otherwise."""
    if entry.get("guess"):
        return stated("DL-IMAGE-GUESSED", image=name, environment=environment.name)
    program = str(entry.get("version") or "")
    asked, has = TAG_VERSION.search(name), environment.version_of(program) if program else ""
    if not asked or not has or f"{has}.".startswith(f"{asked[1]}."):
        return ""
    return stated(
        "DL-IMAGE-VERSION", image=name, asked=asked[1], environment=environment.name, program=program, version=has
    )


def _fits(patterns: Any, forms: list[str]) -> bool:
    """No pattern at all fits everything."""
    if patterns is None:
        return True
    stated = [patterns] if isinstance(patterns, str) else patterns
    return any(fnmatchcase(form, str(pattern)) for pattern in stated for form in forms)


def _located(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The entry with its files found: relative ones lie beside the catalogue that names them."""
    if not entry.get("files"):
        return entry
    return {**entry, "files": {target: str(folder / source) for target, source in entry["files"].items()}}


def data_folder() -> Path:
    """Where `danlu data get` keeps data sets; containers find it at $DANLU_DATA. Else those shared by all accounts."""
    own, shared = cache() / "data", SHARED_CACHE / "data"
    return own if own.is_dir() or not shared.is_dir() else shared


def _read(path: Path) -> dict[str, Any]:
    from danlu.meta import yamlreader

    try:
        found = yamlreader.load(path.read_bytes())[0] or {}
    except yamlreader.YamlError as error:
        raise ImageError(f"{path} is not valid YAML: {error}; mend it or remove it") from None
    if not isinstance(found, dict):
        raise ImageError(f"{path} is not a catalogue: it has to be a map with `images` and `environments`")
    return found


def _environment(name: str, entry: dict[str, Any], folder: Path) -> Environment:
    variables = {key: str(value) for key, value in (entry.get("env") or {}).items()}
    lock = folder / entry["lock"] if entry.get("lock") else None
    return Environment(name, variables, tuple(entry.get("requirements") or ()), entry.get("python") or "", lock)


def build(environment: Environment, progress: Progress = lambda line: None) -> Path:
    """Makes the virtual environment, or returns it when it is there. Two builders of one environment wait in line."""
    folder = environment.folder
    if folder is None or not environment.requirements:
        raise ImageError(f'environment "{environment.name}" has nothing to build')
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f"{folder.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if environment.is_built:
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        progress(f"making {folder}")
        _run([sys.executable, "-m", "venv", str(folder)], progress)
        install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
        locked = ["--require-hashes", "-r", str(environment.lock)] if environment.lock else environment.requirements
        _run([*install, *locked], progress)
        listed = subprocess.run(
            [str(folder / "bin" / "python"), "-m", "pip", "freeze"], capture_output=True, text=True, check=True
        )
        (folder / COMPLETE).write_text(listed.stdout)
    return folder


def _run(command: list[str], progress: Progress) -> None:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        last = ""
        for line in process.stdout:
            last = line.rstrip() or last
            progress(line.rstrip())
    if process.returncode != 0:
        raise ImageError(f"{' '.join(command[:4])} … ended with {process.returncode}: {last}")
