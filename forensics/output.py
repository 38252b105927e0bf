"""Writes results: whole or not at all, never over somebody else's file."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from forensics.errors import ForensicsError

OURS = (b'name="generator" content="forensics', b'"name": "forensics"')


def check(path: Path, *, force: bool, replace_own: bool = False) -> None:
    """Raises ForensicsError where a file stands in the way; with `replace_own` an earlier report of ours does not."""
    if not path.exists() or force:
        return
    if replace_own and path.is_file():
        with path.open("rb") as f:
            head = f.read(4096)
        if any(mark in head for mark in OURS):
            return
    raise ForensicsError(f"{path} exists already", "Use --force to replace it, or --out for another name.")


def write(path: Path, text: str | bytes) -> None:
    """Atomically: a file of that name is either the old one or the whole new one."""
    data = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}-")
    except OSError as e:
        raise ForensicsError(f"cannot write {path}: {e.strerror}", "Choose another place with --out.") from e
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(data)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except OSError as e:
        raise ForensicsError(f"cannot write {path}: {e.strerror}", "Choose another place with --out.") from e
    finally:
        Path(name).unlink(missing_ok=True)


def case_json(document: dict[str, Any]) -> str:
    """The case as text: `tool` comes early, so that our own files are known by their first bytes."""
    return json.dumps(document, allow_nan=False, ensure_ascii=False, indent=1) + "\n"
