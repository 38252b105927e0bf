"""Post-hoc run forensics for machine-learning training: ``analyze(path)`` gives a case, ``read(path)`` the tables. docs/api.md has the rest."""

import sys  # nothing that is not built in may be imported before the path is safe, not even __future__

if sys.argv[:1] == ["-m"]:  # `python -m forensics`: Python put the current folder, which may be a run's, first on its path
    from forensics import safe_path

    safe_path.leave_current_folder()

import importlib
import importlib.util
import pathlib
from typing import TYPE_CHECKING, Any

from forensics.errors import ForensicsError
from forensics.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Unpack

    from forensics.api import AuditOptions, Progress, ReplayOptions, StrPath
    from forensics.case import Case
    from forensics.frames import Frame, Run
    from forensics.guards.guarded import Guarded
    from forensics.results import Audit, Comparison

__version__ = VERSION
_TYPES = {
    "Audit": "forensics.results",
    "Case": "forensics.case",
    "Comparison": "forensics.results",
    "Frame": "forensics.frames",
    "Guarded": "forensics.guards.guarded",
    "Run": "forensics.frames",
}  # imported when they are asked for: `import forensics` takes no time
__all__ = [
    "Audit",
    "Case",
    "Comparison",
    "ForensicsError",
    "Frame",
    "Guarded",
    "Run",
    "__version__",
    "analyze",
    "audit",
    "compare",
    "guard",
    "read",
    "record",
    "replay",
]


if not TYPE_CHECKING:  # a type checker that sees it takes every misspelt name for one of ours

    def __getattr__(name):
        if name in _TYPES:
            return getattr(importlib.import_module(_TYPES[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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


def read(
    path: "StrPath",
    *,
    run: str | None = None,
    metrics: "Mapping[str, str] | None" = None,
    run_config: bool = True,
    progress: "Progress | None" = None,
) -> "Run":
    """Reads the run at a path (a folder, a file, an fsspec URL) without judging it.

    Where several runs lie there: the worst, as ``forensics analyze`` takes it, or the one that ``run`` names (its id, or what it alone
    begins or ends with); ``.siblings`` tells of the others. ``metrics`` maps canonical names to your own tags
    (``{"loss.train": "my/own/tag"}``). ``run_config=False`` ignores a forensics.toml in the run folder. ``progress`` is called with what is
    being read, bytes done and bytes in all.

    Raises ForensicsError where nothing can be read.
    """
    from forensics import api

    return api.read(path, run=run, metrics=metrics, run_config=run_config, progress=progress)


def analyze(
    path: "StrPath",
    *,
    run: str | None = None,
    metrics: "Mapping[str, str] | None" = None,
    run_config: bool = True,
    baseline: "StrPath | None" = None,
    batches: "StrPath | None" = None,
    progress: "Progress | None" = None,
) -> "Case":
    """Says what went wrong in the run at a path, and why: the case that ``forensics analyze`` writes.

    The run is chosen as ``read`` does. ``baseline`` is the path of a known good run: where the two part is evidence for and against each
    cause. ``batches`` is a file that maps steps to samples; it replaces what the run recorded.

    Raises ForensicsError where nothing can be read.
    """
    from forensics import api

    return api.analyze(path, run=run, metrics=metrics, run_config=run_config, baseline=baseline, batches=batches, progress=progress)


def compare(
    a: "StrPath", b: "StrPath", *, metrics: "Mapping[str, str] | None" = None, run_config: bool = True, progress: "Progress | None" = None
) -> "Comparison":
    """Finds the first step at which two runs part, and what differs in settings, environment, source and data.

    Each path must hold one run; of a folder with several, give the path of one.

    Raises ForensicsError where nothing can be read, where a path holds several runs, or where the two have no metric in common.
    """
    from forensics import api

    return api.compare(a, b, metrics=metrics, run_config=run_config, progress=progress)


def audit(
    roots: "StrPath | Sequence[StrPath]",
    out: "StrPath",
    *,
    force: bool = False,
    progress: "Progress | None" = None,
    **options: "Unpack[AuditOptions]",
) -> "Audit":
    """Analyzes every run below one or several roots (folders, files, fsspec URLs) into the folder or URL ``out``, as ``forensics audit`` does.

    ``out`` gets index.html, audit.parquet, audit.json, summary.md and the pages of the worst runs. ``force=True`` replaces an earlier audit
    there. The options are those of the command line; ``engine`` is "local", "dask" or "ray", ``timeout`` counts seconds a run. One bad run
    never stops the rest.

    Raises ForensicsError where nothing is found or written, and where ``out`` holds an audit and neither ``resume`` nor ``force`` is given.
    """
    from forensics import api

    return api.audit(roots, out, force=force, progress=progress, options=options)


def replay(
    path: "StrPath",
    adapter: "StrPath",
    *,
    run: str | None = None,
    metrics: "Mapping[str, str] | None" = None,
    run_config: bool = True,
    progress: "Progress | None" = None,
    **options: "Unpack[ReplayOptions]",
) -> "Case":
    """Runs the steps around the failure again and finds its cause by experiment; the case has the ranking after it.

    ``adapter`` is your Python file with ``build()``, ``batch(step)`` and ``loss(model, batch)``, or "hf", "lightning" or "nanogpt". It is run
    in a process of its own; nothing of it is imported here. ``steps`` is a pair of steps as the log labels them, ``max_time`` counts minutes,
    ``memory`` GB, ``timeout`` seconds a step, ``budget`` training steps. ``case.replay["verdict"]`` says what was proved and
    ``case.replay["skip"]`` what to leave out next time. If the replay stops early (an error of the adapter, Ctrl-C), the case holds what was
    learned until then, and ``case.replay["trouble"]`` is the reason.

    Raises ForensicsError where nothing can be read, and where the adapter is none.
    """
    from forensics import api

    return api.replay(path, adapter, run=run, metrics=metrics, run_config=run_config, progress=progress, options=options)


def guard(
    path: "StrPath",
    *,
    run: str | None = None,
    metrics: "Mapping[str, str] | None" = None,
    run_config: bool = True,
    progress: "Progress | None" = None,
) -> "Guarded":
    """Says which live guards would have caught what went wrong in a run: ``.best``, ``.rows``, and ``.emit("hf")`` as the text of a callback
    file (also "lightning", "torch", "python").

    Raises ForensicsError where nothing can be read.
    """
    from forensics import api

    return api.guard(path, run=run, metrics=metrics, run_config=run_config, progress=progress)


def record(step: int, ids: Any, folder: "StrPath" = ".", **values: float) -> None:
    """In a training script, after each step: appends which samples it had to ``batches.jsonl`` in the run folder.

    ``step`` as the log counts it, ``ids`` a list of numbers or strings or a tensor of integers, ``values`` any numbers by name
    (``loss=float(loss)``). Under torchrun every rank writes a file of its own.

    Raises OSError where the file cannot be written.
    """
    from forensics import recorder

    recorder.record(step, ids, folder, **values)
