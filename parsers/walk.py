"""Finds the files of a run folder in a stable order, without following anything out of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from parsers.tables import Gap, Source, relative

MAX_FILES = 200_000
# The last is what an audit of ours keeps
_NEVER = {".git", ".dvc", "__pycache__", "node_modules", ".ipynb_checkpoints", ".venv", "site-packages", ".audit"}
_AIM = (
    "an Aim repository, whose databases only Aim's own package reads: write its runs as tables (`aim.Repo(FOLDER).iter_runs()`, "
    "`Run.dataframe()`, pandas' `to_csv`) and have those read"
)
_SPECIAL = {stat.S_IFIFO: "named pipe", stat.S_IFSOCK: "socket", stat.S_IFBLK: "block device", stat.S_IFCHR: "character device"}


def is_regular(path: Path, *, links: bool = True, below: Path | None = None) -> bool:
    """Whether a path leads to a regular file: to open anything else may wait for ever, or never end.

    ``links=False``: a link is none, wherever it leads; ``below``: nor is one that leads out of this folder.
    """
    try:
        info = path.stat() if links else path.lstat()
        inside = below is None or path.resolve(strict=True).is_relative_to(below.resolve())
    except (OSError, RuntimeError, ValueError):  # RuntimeError: a link that leads to itself; ValueError: a name with a NUL
        return False
    return stat.S_ISREG(info.st_mode) and inside


def walk(root: Path, most: int = MAX_FILES) -> Iterator[Path | Source | Gap]:
    """Regular files below root, sorted; what is no regular file comes as a Source that says what it is.

    Links that stay inside the run are skipped (their target is read anyway), links out of it are named and not followed.
    Folders may lie in one another to any depth.
    """
    if not root.is_dir():
        yield root if root.is_file() else _file(root, root, root.parent)
        return
    inside = root.resolve()
    found = 0
    waiting = [root]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                kinds = {e.name: e.is_dir(follow_symlinks=False) for e in entries}
        except OSError as e:
            yield Gap("byte 0", f"folder cannot be opened: {e.strerror}", None, relative(here, root))
            continue
        if "CURRENT" in kinds and any(name.startswith("MANIFEST-") for name in kinds):
            yield Source(relative(here, root), "RocksDB or LevelDB database, not opened", 0, claimed=False)
            continue
        folders = sorted(name for name, is_folder in kinds.items() if is_folder)
        yield from _beside(here, root, folders)
        waiting += [here / name for name in reversed(folders) if name not in _NEVER]
        for name in sorted(name for name, is_folder in kinds.items() if not is_folder):
            found += 1
            if found > most:
                yield Gap("byte 0", f"more than {most} files: the rest was not looked at", None, relative(here, root))
                return
            yield _file(here / name, root, inside)


def _beside(here: Path, root: Path, folders: list[str]) -> Iterator[Path | Source | Gap]:
    """What is told of a folder as a whole, and of those in it that are not entered."""
    if here.name == ".aim" and "meta" in folders:
        yield Gap("byte 0", _AIM, None, relative(here, root))
    for name in (n for n in folders if n in _NEVER):
        yield Source(relative(here / name, root), "folder of tools, not read", 0, claimed=False)
        if name == ".git":
            yield from sorted(p for p in (here / name / "refs" / "exps").glob("??/*/*") if is_regular(p, links=False))  # DVC's experiments


def _file(path: Path, root: Path, inside: Path) -> Path | Source | Gap:
    try:
        mode = path.lstat().st_mode
    except OSError as e:
        return Gap("byte 0", f"cannot be looked at: {e.strerror}", None, relative(path, root))
    if stat.S_ISLNK(mode):
        return _link(path, root, inside)
    if stat.S_ISREG(mode):
        return path
    what = _SPECIAL.get(stat.S_IFMT(mode), "not a regular file")
    return Source(relative(path, root), f"{what}, not opened", 0, claimed=False)


def _link(path: Path, root: Path, inside: Path) -> Source:
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return Source(relative(path, root), "dangling or circular link", 0, claimed=False)
    if target.is_relative_to(inside):
        what = f"link to {relative(target, inside)}"
    else:
        what = "link out of the run folder, not followed"
    return Source(relative(path, root), what, 0, claimed=False)
