"""What lies beside the adapter can be imported by the adapter and by what it imported from there, by nobody else.

A folder of training code may hold a `logging.py` or a `triton.py`. As a folder on the path, even at its end, it would hand
these to any library that asks for such a name. So it never comes on the path.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType
from typing import Any, Optional

STANDARD = getattr(sys, "stdlib_module_names", frozenset(sys.builtin_module_names))  # Python 3.9 does not list them
INSTALLED = ("site-packages", "dist-packages")  # of an environment that lies in the folder


class Beside:
    """A finder (for ``sys.meta_path``) of the modules in a folder, for code that lies there. ``found``: their files and packages,
    relative to the folder."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)
        self.found: list[str] = []

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:  # noqa: UP045 (Python 3.9)
        if path is not None or name in STANDARD or not self._is_ours(_asker()):
            return None
        spec = PathFinder.find_spec(name, [self.folder])
        if spec is None or (spec.loader is None and PathFinder.find_spec(name) is not None):
            return None  # a plain folder of that name counts only where no module has it, as Python has it
        self.found.append(os.path.relpath(spec.origin, self.folder) if spec.origin else name)
        return spec

    def _is_ours(self, file: str) -> bool:
        inside = os.path.realpath(file).startswith(self.folder + os.sep)
        return inside and not set(INSTALLED) & set(file.split(os.sep)) and not file.startswith(os.path.dirname(os.__file__))


def _asker() -> str:
    """The file of the code that imports, past the frames of the import system."""
    frame: Optional[FrameType] = sys._getframe(2)  # noqa: UP045
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith("<frozen importlib") and os.sep + "importlib" + os.sep not in file:
            return file
        frame = frame.f_back
    return ""
