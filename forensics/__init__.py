"""Post-hoc run forensics for machine-learning training: ``analyze(path)`` gives a case, ``read(path)`` the tables."""

import sys  # nothing that is not built in may be imported before the path is safe, not even __future__

if sys.argv[:1] == ["-m"]:  # `python -m forensics`: Python put the current folder, which may be a run's, first on its path
    from forensics import safe_path

    safe_path.leave_current_folder()

import importlib.util
import pathlib
from typing import TYPE_CHECKING, Any

from forensics.version import VERSION

if TYPE_CHECKING:
    from forensics.case import Case
    from forensics.guards.guarded import Guarded
    from parsers.tables import Run

__version__ = VERSION
__all__ = ["__version__", "analyze", "guard", "read", "record"]


def _no_shadow() -> None:
    """Our `parsers` and `reports` are plain top-level packages, and users have folders of that name: say so, clearly."""
    home = pathlib.Path(__file__).resolve().parent.parent
    for name in ("parsers", "reports"):
        spec = importlib.util.find_spec(name)
        found = pathlib.Path(spec.origin).resolve().parent if spec and spec.origin else None
        if found != home / name:
            raise ImportError(
                f"run-forensics needs its package `{name}`, but Python finds {found or 'another one'} first. "
                f"Rename that folder, or run from another one (the installed command `forensics` works anywhere)."
            )


_no_shadow()


def read(path: str, **options: Any) -> "Run":
    """The run at a path (a folder, a file, an fsspec URL): ``.tables["metrics"]`` and the rest as Arrow tables.

    Where several runs lie there: the worst, as ``forensics analyze`` takes it, or the one that ``run="..."`` names;
    ``.siblings`` tells of the others. Raises ForensicsError where nothing can be read.
    """
    from forensics import at_path

    return at_path.read(path, **options)


def analyze(path: str, **options: Any) -> "Case":
    """The case of the run at a path, chosen as ``read`` does. Raises ForensicsError where nothing can be read."""
    from forensics import at_path

    return at_path.analyze(path, **options)


def guard(path: str, **options: Any) -> "Guarded":
    """Which live guards would have caught what went wrong in that run: ``.best``, ``.rows``, and ``.emit("hf")`` as the text of a
    callback file. Raises ForensicsError where nothing can be read."""
    from forensics import at_path

    return at_path.guard(path, **options)


def record(step: int, ids: Any, folder: str = ".", **values: float) -> None:
    """In a training script, after each step: which samples it had, into ``batches.jsonl`` in the run folder; see forensics.recorder."""
    from forensics import recorder

    recorder.record(step, ids, folder, **values)
