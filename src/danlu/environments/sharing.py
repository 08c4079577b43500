"""A built environment put where every account of the machine finds it.

A virtual environment holds its own place in its scripts, and leads to the Python it was made with; that may lie in the
home of whoever built it. The copy names its new place, and a Python that all accounts may run. Files are linked where
both places lie on one disk: 5 GB need not be there twice.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

from danlu.embedded.node.imagesource import ImageError
from danlu.environments.catalogue import COMPLETE, Environment, Progress

CHANGED = ("home", "executable", "command")  # what pyvenv.cfg says of the Python it was made with
SYSTEM_FOLDERS = ("/usr/bin", "/usr/local/bin", "/opt/bin")


def share(environment: Environment, cache: Path, progress: Progress = lambda line: None) -> Path:
    """Into CACHE/environments; returns the folder. Nothing is done when it is there already."""
    source = environment.folder
    if source is None or not environment.requirements or not environment.is_built:
        raise ImageError(f'environment "{environment.name}" is not built: run `danlu images build {environment.name}`')
    target = cache / "environments" / source.name
    if source == target or (target / COMPLETE).exists():
        return target
    python = python_for_all()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for folder in (cache, target.parent):
            folder.chmod(0o755)
        new = target.with_name(f"{target.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        progress(f"copying {source} to {target}")
        shutil.copytree(source, new, symlinks=True, copy_function=_link)
        for path in (new, *(p for p in new.rglob("*") if p.is_dir() and not p.is_symlink())):
            path.chmod(0o755)
        _move_in(new, source, target, python)
        shutil.rmtree(target, ignore_errors=True)
        new.rename(target)
    except OSError as error:
        where = getattr(error, "filename", None) or target
        raise ImageError(
            f"{where}: {error.strerror or error}; share it as root, or name a folder that you may write: --to FOLDER"
        ) from error
    return target


def python_for_all() -> Path:
    """Of the version that environments are made for, in a folder of the system."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    own = Path(os.path.realpath(sys.executable))
    for path in (own, *(Path(folder) / version for folder in SYSTEM_FOLDERS)):
        if path.exists() and all(folder.stat().st_mode & stat.S_IXOTH for folder in (path, *path.parents)):
            return path
    raise ImageError(
        f"{own} may only be run by some accounts, and there is no {version} in {', '.join(SYSTEM_FOLDERS)}: install "
        "one for all of them"
    )


def _link(source: str, target: str) -> None:
    if os.stat(source).st_mode & stat.S_IROTH:
        try:
            os.link(source, target)
            return
        except OSError:  # another disk
            pass
    shutil.copyfile(source, target)
    os.chmod(target, os.stat(source).st_mode & 0o777 | 0o444)


def _move_in(new: Path, old_place: Path, place: Path, python: Path) -> None:
    """Its scripts and settings name the new place; each is written anew, for the old one has the same file."""
    scripts = [p for p in (new / "bin").iterdir() if p.is_file() and not p.is_symlink()]
    for path in (*scripts, new / "pyvenv.cfg"):
        mode, text = path.stat().st_mode & 0o777, path.read_bytes()
        if str(old_place).encode() in text:
            path.unlink()
            path.write_bytes(text.replace(str(old_place).encode(), str(place).encode()))
            path.chmod(mode | 0o444)
    settings = new / "pyvenv.cfg"
    lines = [line for line in settings.read_text().splitlines() if line.partition("=")[0].strip() not in CHANGED]
    settings.unlink()
    settings.write_text("\n".join([f"home = {python.parent}", *lines, ""]))
    for path in (new / "bin").glob("python*"):
        if path.is_symlink() and os.path.isabs(os.readlink(path)):
            path.unlink()
            path.symlink_to(python)
