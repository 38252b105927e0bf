"""A small TOML file of settings, which may lie in anybody's folder: what it holds, or why it is not usable."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

NAME = "forensics.toml"
LARGEST = 1 << 20  # bytes; a team has some dozens of tags


class Unusable(Exception):
    """Why a file is left out, in a few words."""


def read(path: Path, *, follow: bool) -> dict[str, Any] | None:
    """The tables of a file; None where there is none. ``follow``: whether a link counts as the file that it leads to. Raises Unusable."""
    try:
        path.lstat()  # FileNotFoundError: nobody has to have one
        from parsers.walk import is_regular  # here: the command line asks, too, which is quick where there is no such file

        if not is_regular(path, links=follow) or path.stat().st_size > LARGEST:
            raise Unusable("not a regular file of a few lines")
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        return None
    except OSError as e:
        raise Unusable(f"cannot be opened ({e.strerror})") from e
    except (ValueError, RecursionError) as e:
        raise Unusable(f"not valid TOML ({e})") from e
