"""The step of a checkpoint whose file and name do not say it: from its counts beside the log of its run."""

from __future__ import annotations

import numpy as np

from forensics.run.series import series
from parsers.checkpoints import Contents
from parsers.records import vocabulary
from parsers.tables import Run


def last_of_log(contents: Contents, run: Run) -> int | None:
    """A number beside the weights under a name that may mean the step (`it`), where the log ends with just this step."""
    told = {int(v) for k, v in contents.values.items() if k.rpartition(":")[2] in vocabulary.WEAK_STEP and type(v) is int}
    spans = [a for a in run.attempts if a.get("steps")]
    if len(told) != 1 or not spans:
        return None
    last = max(spans, key=lambda a: a["steps"][1])
    n = told.pop()
    return n if 0 <= n - last["steps"][1] <= 1 else None


def _epochs(contents: Contents) -> list[float]:
    return [v for k, v in contents.values.items() if k.rpartition(":")[2] == "epoch" and type(v) in (int, float)]


def end_of_epoch(contents: Contents, run: Run) -> int | None:
    """The last step that was logged before the epochs were over that a file counts; None where it counts none, or none were logged."""
    told, logged = _epochs(contents), series(run, "epoch")
    if not told or logged is None or not logged.usable.any():
        return None
    epoch = np.floor(logged.value[logged.usable])
    first = float(epoch.min())
    within = epoch < max(told[0] + first, first + 1)  # from 0 on the next one is saved, from 1 on the one that ended
    return int(logged.step[logged.usable][within].max()) if within.any() else None


def is_epoch(step: int | None, contents: Contents, run: Run) -> bool:
    """True where the number in the name is that of the epoch: checkpoint-3.pth.tar of a run that has thousands of steps."""
    epochs = _epochs(contents)
    last = max((a["steps"][1] for a in run.attempts if a.get("steps")), default=0)
    return step is not None and any(abs(e - step) <= 1 for e in epochs) and last > 5 * step
