"""What a file is that no parser claims, so that nothing is skipped silently: one that proves its meaning is read all the same, any other is named."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import ModuleType

from parsers import unknown_log
from parsers.console_format.feed import says_steps
from parsers.formats import console
from parsers.lazy_regex import lazy_re
from parsers.tables import HEAD_BYTES

# How a page, a case, a comparison, an audit, a traceback and a journal of ours begin
_REPORT = lazy_re(
    rb'<!doctype html>\s.{0,300}?<meta name="generator" content="forensics '
    rb'|\s{0,9}\{\s{0,9}"schema": \d{1,9},\s{1,9}(?:"kind": "comparison",\s{1,9})?"tool": \{\s{1,9}"name": "forensics"'
    rb'|\{\s{0,9}"\$schema": "[^"]{0,200}sarif[^"]{0,99}",\s{0,9}"version": "2\.1\.0",\s{0,9}"runs": \[\s{0,9}\{\s{0,9}"tool": \{\s{0,9}"driver": \{'
    rb'\s{0,9}"name": "forensics"|<\?xml [^>]{0,99}>\s{0,9}<testsuites name="forensics"'
    rb'|forensics replay: |\{"forensics_replay_journal": ',
    re.DOTALL,
)
_MAGIC = [
    (b"version https://git-lfs", "Git-LFS pointer: the content was never fetched"),
    (b"/annex/objects/", "git-annex pointer: the content was never fetched"),
    (b"PK\x03\x04", "zip archive"),
    (b"\x1f\x8b", "gzip archive"),
    (b"BZh", "bzip2 archive"),
    (b"\xfd7zXZ\x00", "xz archive"),
    (b"\x28\xb5\x2f\xfd", "zstandard archive"),
    (b"7z\xbc\xaf\x27\x1c", "7-zip archive"),
    (b"SQLite format 3\x00", "SQLite database"),
    (b"\x89HDF\r\n\x1a\n", "HDF5 file"),
    (b"\x89PNG", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"RIFF", "audio or video"),
    (b"%PDF", "PDF document"),
    (b"\x93NUMPY", "numpy array"),
    (b"\x7fELF", "program"),
    (b"#!", "script"),
    *((bytes([0x80, protocol]), "pickle, not opened") for protocol in range(2, 6)),
]
_NUMBER = lazy_re(rb"[-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|nan|inf)[,;]?")
_KINDS = {
    "Python source": ".py",
    "shell script": ".sh",
    "source code": ".c .cu .cpp .h .rs .js .ts",
    "notebook": ".ipynb",
    "document": ".md .rst .tex .html",
    "patch": ".patch .diff",
    "iCloud placeholder: the content was never fetched": ".icloud",
    "lock file": ".lock",
    "process id": ".pid",
    "pickle, not opened": ".pkl .pickle .p",
    "TensorFlow graph or index": ".pbtxt",
    "protobuf schema": ".proto",
    "image": ".svg",
    "audio": ".wav",
    "video": ".mp4",
    "tokenizer or model file": ".model",
    "vocabulary": ".vocab",
    "W&B sync marker": ".synced",
}
_SUFFIX = {suffix: what for what, suffixes in _KINDS.items() for suffix in suffixes.split()}


_TEXT = "text that no parser knows"
_LEAST, _LOOKED_AT = 8, 200  # lines: fewer show no habit; `says_steps` looks at so many


def is_report(head: bytes) -> bool:
    """Is it something that forensics wrote about a run? It is no part of the run."""
    return _REPORT.match(head) is not None


def sampled(path: Path, head: bytes) -> ModuleType | None:
    """What reads a text that nothing names: the console's parser where most of its lines measure something at a step, `unknown_log` where all
    have one shape and count; None where its meaning is not proven."""
    if describe(path, head) != _TEXT:
        return None
    lines = head.decode("utf-8", "replace").splitlines()
    lines = lines if len(head) < HEAD_BYTES else lines[:-1]
    if any(len(part) >= _LEAST and says_steps(part) * 2 > len(part[:_LOOKED_AT]) for part in (lines, _last_lines(path, len(head)))):
        return console
    return unknown_log if unknown_log.usual(lines) is not None else None


def _last_lines(path: Path, seen: int) -> list[str]:
    """The end of a longer file: settings that every process prints may fill its beginning."""
    try:
        with path.open("rb") as f:
            size = f.seek(0, os.SEEK_END)
            f.seek(max(size - HEAD_BYTES, seen))
            return f.read(HEAD_BYTES).decode("utf-8", "replace").splitlines()[1:] if size > seen else []
    except OSError:
        return []


def describe(path: Path, head: bytes) -> str:
    """A few plain words: 'Git-LFS pointer', 'zip archive', 'Python source', 'text', 'unknown binary'."""
    if not head:
        return "empty file"
    for magic, what in _MAGIC:
        if head.startswith(magic):
            return what
    if path.suffix.lower() in _SUFFIX:
        return _SUFFIX[path.suffix.lower()]
    if not head.strip(b"\x00"):
        return "zeros only"
    if b"\x00" not in head and sum(b < 9 or 13 < b < 32 for b in head) < len(head) / 50:
        return "a table of numbers without names of columns" if _bare(head) else _TEXT
    return "unknown binary"


def _bare(head: bytes) -> bool:
    """Rows of as many numbers, and not a name: nothing says what they measure."""
    rows = [_NUMBER.sub(b"0", line).split() for line in head.splitlines()[:-1] if line.strip()]
    return len(rows) > 1 and len(rows[0]) > 1 and all(r == rows[0] and set(r) == {b"0"} for r in rows)
