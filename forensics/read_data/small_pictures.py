"""Arrays and picture files as a few pixels to look at: uint8, at most 112 wide and high."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.batches.sample_stats import TOKENS
from parsers.lazy_regex import lazy_re
from parsers.records import picture_files
from parsers.records.data_set_rows import Unreadable

EDGE = 112  # pixels: eight fit beside each other on a page
LEAST = 8  # pixels of an edge below which a table of numbers is no picture
FLAT = 256  # pixels from which a flat row of bytes whose count is a square is one (16 x 16)
NAMED = lazy_re(r"(?i)^(images?|img|pixels?|pixel_values|picture|x)$")
Picture = dict[str, Any]  # {"name", "width", "height", "channels", "pixels": bytes, "says"}


def of(name: str, value: Any) -> Picture | None:
    """A picture of a field of a row; None where it is none. A damaged file is a picture without pixels, with the reason."""
    data = value.get("bytes") if isinstance(value, dict) else value
    if isinstance(data, (bytes, bytearray)) and picture_files.is_picture(bytes(data[:8])):
        try:
            pixels, (width, height) = picture_files.small(bytes(data), EDGE)
        except Unreadable as e:
            return {"name": name, "width": 0, "height": 0, "channels": 0, "pixels": b"", "says": str(e)}
        return _picture(name, pixels, f"{width} x {height} pixels")
    if not isinstance(value, (list, np.ndarray)):
        return None
    array = _array(value)
    shaped = None if array is None else _shaped(name, array)
    return None if shaped is None else _drawn(name, shaped)


def _array(value: Any) -> NDArray[Any] | None:
    try:
        array = np.asarray(value)
    except ValueError:
        return None
    return array if array.dtype.kind in "iufb" and array.size else None


def _shaped(name: str, a: NDArray[Any]) -> NDArray[Any] | None:
    """Height x width, or height x width x channels; None where the array is no picture."""
    if a.ndim == 1 and a.size >= FLAT and not TOKENS.match(name) and (a.dtype == np.uint8 or NAMED.match(name)):
        edge = round(a.size**0.5)
        return a.reshape(edge, edge) if edge * edge == a.size and (a.dtype.kind == "f" or (a.min() >= 0 and a.max() <= 255)) else None
    if a.ndim == 3 and a.shape[2] not in (1, 3, 4) and a.shape[0] in (1, 3, 4):
        a = np.moveaxis(a, 0, -1)
    if min(a.shape[:2], default=0) < LEAST or a.ndim not in (2, 3) or (a.ndim == 3 and a.shape[2] not in (1, 3, 4)):
        return None
    return a[:, :, 0] if a.ndim == 3 and a.shape[2] == 1 else a[:, :, :3] if a.ndim == 3 else a


def _drawn(name: str, a: NDArray[Any]) -> Picture:
    """Every n-th pixel; numbers that are no bytes are stretched to them, and that is said."""
    height, width = a.shape[:2]
    step = -(-max(height, width) // EDGE)
    small = np.asarray(a[::step, ::step])
    said = f"{width} x {height} {a.dtype}"
    if small.dtype == np.uint8 or (small.dtype.kind in "iu" and small.min() >= 0 and 1 < small.max() <= 255):
        return _picture(name, small.astype(np.uint8), said)
    values = small.astype(np.float64)
    finite = np.isfinite(values)
    low, high = (float(values[finite].min()), float(values[finite].max())) if finite.any() else (0.0, 0.0)
    bottom, top = (0.0, 1.0) if low >= 0 and high <= 1 else (0.0, 255.0) if low >= 0 and high <= 255 else (low, high)
    with np.errstate(over="ignore", invalid="ignore"):
        share = np.where(finite, (values - bottom) / ((top - bottom) or 1.0), 0.0)
    lost = f", {int((~finite).sum())} of {values.size} shown are NaN or infinite (black)" if not finite.all() else ""

    return _picture(name, (np.clip(np.nan_to_num(share), 0, 1) * 255).astype(np.uint8), f"{said}, {low:.4g} to {high:.4g}{lost}")


def _picture(name: str, pixels: NDArray[np.uint8], says: str) -> Picture:
    height, width = pixels.shape[:2]
    channels = 1 if pixels.ndim == 2 else 3
    return {
        "name": name,
        "width": width,
        "height": height,
        "channels": channels,
        "pixels": np.ascontiguousarray(pixels).tobytes(),
        "says": says,
    }
