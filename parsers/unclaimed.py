"""Says what a file is that no parser claims, so that nothing is skipped silently."""

from __future__ import annotations

import re
from pathlib import Path

# How a page, a case, a comparison, an audit and a traceback of ours begin
_REPORT = re.compile(
    rb'<!doctype html>\s.{0,300}?<meta name="generator" content="forensics '
    rb'|\s{0,9}\{\s{0,9}"schema": \d{1,9},\s{1,9}(?:"kind": "comparison",\s{1,9})?"tool": \{\s{1,9}"name": "forensics"'
    rb"|forensics replay: ",
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
    (b"\x80\x02", "pickle, not opened"),
    (b"\x80\x03", "pickle, not opened"),
    (b"\x80\x04", "pickle, not opened"),
    (b"\x80\x05", "pickle, not opened"),
]
_SUFFIX = {
    ".py": "Python source",
    ".sh": "shell script",
    ".c": "source code",
    ".cu": "source code",
    ".cpp": "source code",
    ".h": "source code",
    ".rs": "source code",
    ".js": "source code",
    ".ts": "source code",
    ".ipynb": "notebook",
    ".md": "document",
    ".rst": "document",
    ".tex": "document",
    ".html": "document",
    ".patch": "patch",
    ".diff": "patch",
    ".icloud": "iCloud placeholder: the content was never fetched",
    ".lock": "lock file",
    ".pid": "process id",
    ".pkl": "pickle, not opened",
    ".pickle": "pickle, not opened",
    ".p": "pickle, not opened",
    ".pbtxt": "TensorFlow graph or index",
    ".proto": "protobuf schema",
    ".svg": "image",
    ".wav": "audio",
    ".mp4": "video",
    ".model": "tokenizer or model file",
    ".vocab": "vocabulary",
    ".synced": "W&B sync marker",
}


def is_report(head: bytes) -> bool:
    """Is it something that forensics wrote about a run? It is no part of the run."""
    return _REPORT.match(head) is not None


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
        return "text that no parser knows"
    return "unknown binary"
