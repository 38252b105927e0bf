"""Git's loose objects, read as files: no git is run, so no hook, filter or remote of a repository that somebody else wrote.

An object is zlib of ``kind size NUL content`` at ``objects/<2>/<38>`` (git's ``Documentation/gitformat-loose``). Objects in packs are not read.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from parsers.lazy_regex import lazy_re

_HASH = lazy_re(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MOST_BYTES = 256 << 20  # unpacked
_DEEPEST, _MOST_FILES = 20, 10_000


class Missing(LookupError):
    """An object that is in a pack, or nowhere."""


def content(git: Path, name: str, kind: str) -> bytes:
    """The content of an object. Raises Missing where it is no loose object of this kind."""
    if not _HASH.fullmatch(name):
        raise Missing(name)
    try:
        with (git / "objects" / name[:2] / name[2:]).open("rb") as f:
            machine = zlib.decompressobj()
            data = machine.decompress(f.read(_MOST_BYTES), _MOST_BYTES)
    except (OSError, zlib.error):
        raise Missing(name) from None
    head, _, body = data.partition(b"\0")
    if head.split(b" ")[0] != kind.encode() or machine.unconsumed_tail:
        raise Missing(name)
    return body


def files(git: Path, commit: str) -> Iterator[tuple[str, str]]:
    """Path and object of every file of a commit. Raises Missing where its trees are not loose."""
    m = re.match(rb"tree ([0-9a-f]+)\n", content(git, commit, "commit"))
    if m is None:
        raise Missing(commit)
    waiting, seen = [("", m[1].decode(), 0)], 0
    while waiting:
        folder, tree, depth = waiting.pop()
        data = content(git, tree, "tree")
        size = len(tree) // 2
        while data and seen < _MOST_FILES:
            head, _, rest = data.partition(b"\0")
            mode, _, name = head.partition(b" ")
            found, data, seen = rest[:size].hex(), rest[size:], seen + 1
            path = folder + name.decode("utf-8", "backslashreplace")
            if mode == b"40000" and depth < _DEEPEST:
                waiting.append((path + "/", found, depth + 1))
            elif mode.startswith(b"100"):
                yield path, found
