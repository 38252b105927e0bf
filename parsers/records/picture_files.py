"""PNG and JPEG files as small arrays of pixels, where Pillow is installed (the extra `images`). A helper, no parser.

The header is asked for the size before a pixel is unpacked, other formats are not opened, and what comes back are pixels: nothing
of the file itself (comments, profiles, thumbnails) goes on.
"""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsers.records.data_set_files import LARGEST_PICTURE
from parsers.records.data_set_rows import Unreadable

MOST_PIXELS = 64 << 20  # of a picture that is unpacked: bound, 200 MB as RGB; larger cameras' pictures are resized before training
HEADS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")


def is_picture(data: bytes) -> bool:
    return data.startswith(HEADS)


def small(data: bytes, edge: int) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    """(RGB pixels, at most `edge` wide and high; width and height of the file). Raises Unreadable with the reason."""
    if len(data) > LARGEST_PICTURE:
        raise Unreadable(f"a file of more than {LARGEST_PICTURE >> 20} MB: not opened")
    try:
        from PIL import Image
    except ImportError:
        raise Unreadable("PNG and JPEG are drawn where Pillow is installed: pip install 'run-forensics[images]'") from None
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as opened:
            size = opened.size
            if size[0] * size[1] > MOST_PIXELS:
                raise Unreadable(f"{size[0]} x {size[1]} pixels: not unpacked")
            opened.draft("RGB", (edge, edge))  # JPEG alone: unpacks an eighth of the pixels where that is enough
            shown: Any = opened.convert("RGB")
            shown.thumbnail((edge, edge))
            return np.asarray(shown, np.uint8), size
    except Unreadable:
        raise
    except Exception as e:  # a damaged file: OSError, SyntaxError, ValueError, struct.error, DecompressionBombError, ...
        raise Unreadable(f"cannot be unpacked: {next(iter(str(e).splitlines()), '')[:100] or type(e).__name__}") from None
