"""Index files of data loaders that lie in a run: Megatron's document, sample and shuffle index, OLMo's global indices. A helper, no parser.

``*document_index.npy``, ``*sample_index.npy``, ``*shuffle_index.npy`` (``*_doc_idx.npy`` and so on before Megatron Core) are numpy files;
``global_indices.npy`` is bare uint32 in spite of its name. Nothing is unpickled; arrays are mapped, not read.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsers.lazy_regex import lazy_re
from parsers.tables import Run
from parsers.walk import is_regular

_KINDS = {
    "document": lazy_re(r"(?:document_index|doc_idx)\.npy$"),
    "sample": lazy_re(r"sample_(?:index|idx)\.npy$"),
    "shuffle": lazy_re(r"shuffle_(?:index|idx)\.npy$"),
}
_OTHER_SPLIT = lazy_re(r"(?i)(?:^|[-_/])(?:valid(?:ation)?|test)(?:[-_]|$)")


def megatron(run: Run) -> dict[str, NDArray[Any]]:
    """{"document", "sample", "shuffle"} -> array of the training split; {} where not all three are there exactly once."""
    found: dict[str, NDArray[Any]] = {}
    for path in _files(run):
        for kind, name in _KINDS.items():
            if not name.search(path.name) or _OTHER_SPLIT.search(path.name):
                continue
            if kind in found:
                return {}
            try:
                found[kind] = mapped(path)
            except (OSError, ValueError):
                return {}
    shaped = [(found[k].ndim, found[k].dtype.kind in "iu" and len(found[k]) > 0) for k in _KINDS if k in found and found[k].ndim]
    return found if shaped == [(1, True), (2, True), (1, True)] and found["sample"].shape[1] == 2 else {}


def mapped(path: Path) -> NDArray[Any]:
    """An .npy file as a memory map. Raises OSError, or ValueError where it is damaged or holds objects."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return np.lib.format.open_memmap(path, mode="r")  # numpy.load would take a zip or a pickle for one, too
    except OSError:
        raise
    except Exception as e:  # its header is Python's literals: tokenize, SyntaxError, OverflowError, TypeError, ...
        raise ValueError(f"{path.name} is no array: {next(iter(str(e).splitlines()), '')[:100]}") from e


def olmo(run: Run) -> tuple[NDArray[np.uint32], str] | None:
    """The order of the epoch and the file's name, or None where there is none or it is damaged."""
    for path in _files(run):
        if path.name == "global_indices.npy" and path.stat().st_size % 4 == 0 and path.stat().st_size:
            with path.open("rb") as f:
                if f.read(6) == b"\x93NUMPY":
                    continue
            return np.memmap(path, np.uint32, "r"), path.name
    return None


def _files(run: Run) -> list[Path]:
    return [p for s in run.sources if s.path.endswith(".npy") and is_regular(p := run.file(s.path), below=_folder(run))]


def _folder(run: Run) -> Path:
    root = Path(run.root)
    return root if root.is_dir() else root.parent
