"""A second opinion: event files and ``.wandb`` files read again by other software, and compared value by value.

What is compared is what the parser takes from one file, before copies of a value in several files are merged into one
row. A TensorBoard value is known by its tag and step, a W&B value by its tag and the byte where its record begins: which
counter of a W&B row is the step is a choice of ours (:mod:`parsers.formats.wandb_offline`), so steps are shown there but
not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import parsers
from forensics.errors import ForensicsError
from forensics.verify import second_readers
from forensics.verify.second_readers import Values
from parsers import arrow
from parsers.tables import Run

SHOWN = 10  # differences listed for a file; all are counted
READERS = {"tensorboard": ("tbparse", second_readers.event_file), "wandb_offline": ("wandb", second_readers.wandb_file)}
KEYS = {"tensorboard": "step", "wandb_offline": "at"}  # the column that tells the values of a tag apart


@dataclass(frozen=True)
class Difference:
    """A value on which the readers differ; None where a reader has no such value."""

    tag: str
    step: int | None
    ours: float | None
    theirs: float | None


@dataclass(frozen=True)
class Comparison:
    """What became of one file: how many values agree, differ, or were found by one reader alone."""

    path: str
    reader: str  # "tbparse 0.0.9"
    agree: int
    differ: int
    only_ours: int
    only_theirs: int
    examples: tuple[Difference, ...] = ()
    stopped: str = ""  # why the other reader did not reach the end

    @property
    def is_same(self) -> bool:
        return not (self.differ or self.only_ours or self.only_theirs or self.stopped)


def verify(runs: Sequence[Run], progress: Callable[[str, int, int], None] | None = None) -> Iterator[Comparison]:
    """One comparison a file. Raises ForensicsError where there is nothing to compare or a reader is not installed."""
    files = {run.file(s.path): (s.path, s.format) for run in runs for s in run.sources if s.format in READERS}
    if not files:
        raise ForensicsError("no TensorBoard event file and no .wandb file here: nothing to verify")
    for done, (path, (shown, kind)) in enumerate(files.items()):
        if progress:
            progress(shown, done, len(files))
        yield compare(path, shown, kind)


def compare(path: Path, shown: str, kind: str) -> Comparison:
    """Reads a file of format ``kind`` twice; ``shown`` is its name in the report."""
    package, read = READERS[kind]
    try:
        theirs, stopped = read(path)
    except ImportError as e:
        raise ForensicsError(
            f"--verify reads {shown} with {package}, which is not installed ({e})",
            "pip install 'run-forensics[verify]', or with pipx: pipx inject run-forensics tbparse wandb",
        ) from e
    ours, step_at = _ours(path, KEYS[kind])
    agree, differ, only_ours, only_theirs, examples = 0, 0, 0, 0, list[Difference]()
    nothing = np.zeros(0, np.int64), np.zeros(0)
    for tag in sorted(ours.keys() | theirs.keys()):
        (key, value), (other_key, other_value) = ours.get(tag, nothing), theirs.get(tag, nothing)
        left, right = _paired(key, value, other_key, other_value)
        a = np.append(value, np.nan)[left]  # -1, no partner, takes the NaN at the end
        b = np.append(other_value, np.nan)[right]
        both = (left >= 0) & (right >= 0)
        same = both & ((a == b) | (np.isnan(a) & np.isnan(b)))
        agree, differ = agree + int(same.sum()), differ + int((both & ~same).sum())
        only_ours, only_theirs = only_ours + int((right < 0).sum()), only_theirs + int((left < 0).sum())
        for i in np.flatnonzero(~same)[: SHOWN - len(examples)].tolist():
            place = int(key[left[i]] if left[i] >= 0 else other_key[right[i]])
            step = place if KEYS[kind] == "step" else step_at.get(place)
            examples.append(Difference(tag, step, a[i].item() if left[i] >= 0 else None, b[i].item() if right[i] >= 0 else None))
    return Comparison(shown, f"{package} {version(package)}", agree, differ, only_ours, only_theirs, tuple(examples), stopped)


def _paired(key: NDArray[np.int64], value: NDArray[np.float64],
            other_key: NDArray[np.int64], other_value: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:  # fmt: skip
    """Which value goes with which: two columns of indices, -1 where one side has no partner.

    Values of one key (a step that was logged twice) are paired in ascending order, because readers sort differently.
    """
    _, code = np.unique(np.concatenate([key, other_key]), return_inverse=True)
    sides = []
    for codes, values in ((code[: len(key)], value), (code[len(key) :], other_value)):
        order = np.lexsort((values, codes))
        ordered = codes[order]
        turn = np.arange(len(order)) - np.searchsorted(ordered, ordered)
        sides.append((order, ordered * (len(code) + 1) + turn))
    (order, ids), (other_order, other_ids) = sides
    whole = np.union1d(ids, other_ids)
    left, right = np.full(len(whole), -1, np.int64), np.full(len(whole), -1, np.int64)
    left[np.searchsorted(whole, ids)] = order
    right[np.searchsorted(whole, other_ids)] = other_order
    return left, right


def _ours(path: Path, column: str) -> tuple[Values, dict[int, int]]:
    """Our values by tag, each with its key, and the step of each place in the file."""
    found: dict[str, list[tuple[NDArray[np.int64], NDArray[np.float64]]]] = {}
    step_at: dict[int, int] = {}
    for batch in parsers.read_file(path, path.parent).batches.get("metrics", []):
        codes, tags = arrow.codes(batch["tag"])
        keys, values = arrow.values(batch[column]), arrow.values(batch["value"])
        if column == "at":
            known = arrow.valid(batch["step"])
            rows = slice(None) if known is None else known
            step_at |= dict(zip(keys[rows].tolist(), arrow.values(batch["step"])[rows].tolist(), strict=True))
        for code in np.unique(codes).tolist():
            here = codes == code
            found.setdefault(tags[code], []).append((keys[here], values[here]))
    return {tag: (np.concatenate([k for k, _ in parts]), np.concatenate([v for _, v in parts])) for tag, parts in found.items()}, step_at
