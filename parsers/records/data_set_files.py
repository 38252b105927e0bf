"""Rows of archives of arrays (``.npz``) and of folders of pictures, by their number. Helpers of data_sets.

An archive's arrays with as many rows as the longest are its columns; it is unpacked into memory, so its size is bounded. Pictures are
counted as torchvision's ImageFolder counts them: folders by name, then files by name; the number of the folder is the label.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsers.records.data_set_rows import DataSet, Row, Unreadable

LARGEST = 4 << 30  # bytes of an unpacked archive: bound; ImageNet at 32x32 in one file has 3.9 GB
LARGEST_PICTURE = 32 << 20  # bytes of one file: bound; a JPEG of 100 megapixels
PICTURES = (".png", ".jpg", ".jpeg")


def archive(files: list[Path]) -> DataSet:
    if len(files) > 1:
        raise Unreadable(f"{len(files)} .npz files: give one of them")
    try:
        arrays = _arrays(files[0])
    except (Unreadable, OSError):
        raise
    except Exception as e:  # a damaged zip, or a header that is Python's literals: BadZipFile, zlib.error, SyntaxError, TokenError, ...
        raise ValueError(next(iter(str(e).splitlines()), "") or type(e).__name__) from e
    rows = max((len(a) for a in arrays.values() if a.ndim), default=0)
    columns = {name: a for name, a in arrays.items() if a.ndim and len(a) == rows}
    return DataSet("arrays", rows, lambda wanted: [{name: a[r] for name, a in columns.items()} for r in wanted])


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    found: dict[str, NDArray[Any]] = {}
    left = LARGEST
    with zipfile.ZipFile(path) as packed:
        for member in packed.infolist():
            if not member.filename.endswith(".npy"):
                continue
            with packed.open(member) as f:
                shape, dtype = _header(f)
            left -= math.prod(shape) * dtype.itemsize
            if dtype.hasobject or math.prod(shape) * dtype.itemsize > member.file_size:
                continue  # a pickle inside, or a header that promises more than there is
            if left < 0:
                raise Unreadable(f"{path.name} unpacks to more than {LARGEST >> 30} GB")
            with packed.open(member) as f:
                raw = io.BytesIO(f.read(member.file_size))
            found[member.filename.removesuffix(".npy")] = np.lib.format.read_array(raw, allow_pickle=False)
    return found


def _header(f: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(f)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(f)
    return shape, dtype


def pictures(files: list[Path]) -> DataSet:
    ordered = sorted(files, key=lambda p: (p.parent.parts, p.name))
    folders = sorted({p.parent for p in ordered})
    label = {folder: i for i, folder in enumerate(folders)}

    def get(wanted: Sequence[int]) -> list[Row]:
        return [_picture(ordered[r], label[ordered[r].parent] if len(folders) > 1 else None) for r in wanted]

    return DataSet("pictures", len(ordered), get, lambda: [p.name for p in ordered])


def _picture(path: Path, label: int | None) -> Row:
    with path.open("rb") as f:
        row: Row = {"image": f.read(LARGEST_PICTURE + 1), "source": f"{path.parent.name}/{path.name}"}
    return row if label is None else row | {"label": label}
