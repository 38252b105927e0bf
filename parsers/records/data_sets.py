"""Rows of a training data set by their number: what `--data` opens. Helpers, no parser: nothing here is a run's file.

Reads JSON lines, Parquet, Arrow files as Hugging Face's ``save_to_disk`` writes them (with its indices, where a
shuffle or selection left some), numpy arrays, flat files of token numbers (uint16 or uint32, as nanoGPT and llm.c write
them), and folders of pictures. Several files of a folder are one data set, in the order of their names. Nothing is unpickled or run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from parsers.records import data_set_files, data_set_rows
from parsers.records.data_set_rows import DataSet, Row, Unreadable
from parsers.walk import is_regular

__all__ = ["DataSet", "Row", "Unreadable", "open_data"]

# what numpy, Arrow and json raise of a damaged file; OSError says by itself what it is about
_DAMAGE = (pa.ArrowException, ValueError, LookupError, TypeError, AttributeError, EOFError, OverflowError, MemoryError, RecursionError)


def open_data(path: Path, block: int | None = None) -> DataSet:
    """The data set at a path. `block`: tokens a sample, for flat token files. Raises Unreadable or OSError, and so do its functions."""
    if not path.exists():
        raise Unreadable(f"{path.name} does not exist")
    folder = path if path.is_dir() else path.parent
    if is_regular(path / "dataset_dict.json", below=path):
        path = path / "train" if (path / "train").is_dir() else path
    files = _files(path)
    suffix = files[0].suffix if files else ""
    files = [f for f in files if f.suffix == suffix or {suffix, f.suffix} <= set(data_set_files.PICTURES)]
    readers = {
        ".jsonl": data_set_rows.lines,
        ".ndjson": data_set_rows.lines,
        ".json": data_set_rows.lines,
        ".parquet": data_set_rows.parquet,
        ".arrow": data_set_rows.arrow,
        ".npz": data_set_files.archive,
        **dict.fromkeys(data_set_files.PICTURES, data_set_files.pictures),
    }
    try:
        if suffix in readers:
            found = readers[suffix](files)
        elif suffix in (".bin", ".npy"):
            found = data_set_rows.tokens(files, block)
        else:
            raise Unreadable(f"{path.name} holds no jsonl, parquet, arrow, npy, npz or bin file, and no picture")
    except _DAMAGE as e:
        raise _unreadable(path, e) from e
    if not found.rows:
        raise Unreadable(f"{path.name} has no rows")

    def get(rows: Sequence[int]) -> list[Row]:
        try:
            return found.get(rows)
        except _DAMAGE as e:
            raise _unreadable(path, e) from e

    def ids() -> list[Any] | None:
        try:
            return found.ids()
        except _DAMAGE as e:
            raise _unreadable(path, e) from e

    return DataSet(found.kind, found.rows, get, ids, _vocabulary(folder))


def _unreadable(path: Path, error: BaseException) -> Unreadable:
    what = next(iter(str(error).splitlines()), "") or type(error).__name__
    return Unreadable(f"{path.name} cannot be read: {what[:160]}")


def _files(path: Path) -> list[Path]:
    """The files of a data set: as its state.json lists them, else the kind there is most of, by name."""
    if not path.is_dir():
        if not is_regular(path):
            raise Unreadable(f"{path.name} is not a regular file: not opened")
        return [path]
    state = path / "state.json"
    if is_regular(state, below=path):
        document = json.loads(state.read_text("utf-8"))
        listed = document.get("_data_files") if isinstance(document, dict) else None
        names = [str(f.get("filename")) if isinstance(f, dict) else "" for f in listed] if isinstance(listed, list) else []
        if names and all(is_regular(path / Path(n).name, below=path) for n in names):
            return [path / Path(n).name for n in names]
    for kinds in ((".jsonl",), (".parquet",), (".arrow",), (".bin",), (".npy",), (".ndjson",), (".npz",), data_set_files.PICTURES):
        named = sorted(p for kind in kinds for p in path.rglob(f"*{kind}") if not p.is_dir() and not p.name.startswith((".", "cache-")))
        found = [p for p in named if is_regular(p, below=path)]
        if len(found) < len(named):
            odd = next(p for p in named if p not in found)
            raise Unreadable(f"{odd.name} is not a regular file of {path.name}, or a link out of it: not opened")
        if found:
            return found
    return []


def _vocabulary(folder: Path) -> int | None:
    """Size of the vocabulary of a tokenizer.json in the folder or the one above."""
    for path in (folder / "tokenizer.json", folder.parent / "tokenizer.json"):
        try:
            if not is_regular(path, below=folder.parent):
                continue
            read = json.loads(path.read_text("utf-8"))
            vocabulary = read["model"]["vocab"]
            ids = vocabulary.values() if isinstance(vocabulary, dict) else range(len(vocabulary))
            added = [t["id"] for t in read.get("added_tokens") or []]
            return int(max([*ids, *added])) + 1
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            continue
    return None
