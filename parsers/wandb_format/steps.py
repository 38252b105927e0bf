"""What W&B's steps mean: which logged value is the optimizer step, and which rows W&B dropped for going back in step.

W&B's ``_step`` counts calls of ``log`` unless the caller gives a step. Frameworks that let it count log their own step
as a metric: Hugging Face ``train/global_step`` (``integrations/integration_utils.py``), Lightning
``trainer/global_step`` (``loggers/wandb.py``), both declared as the x axis with ``define_metric``.

A row whose step is below the last one is dropped with a warning, whose words changed over the versions:

* 0.10-0.17: ``Step must only increase in log calls.  Step 3 < 9; dropping {...}``,
  ``Step 3 < 9. Dropping entry: {...}``, ``(User provided step: 3 is less than current step: 9. Dropping entry: {...})``
* 0.18 and later, on the console: ``Tried to log to step 3 that is less than the current step 9. Steps must be ...``;
  in ``debug-internal.log``: ``{"msg": "handler: ignoring partial history record", "step": 3, "current": 9}``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from parsers.lazy_regex import lazy_re
from parsers.records import vocabulary
from parsers.tables import Rows
from parsers.wandb_format.key_values import Message

Floats = NDArray[np.float64]

_PREFIX = lazy_re(r"^train(?:er|ing)?[/._]")
_GLOBAL_STEP = {name for name in vocabulary.STEP if name.endswith("global_step")}

_DROPPED = lazy_re(
    r"(?i)log to step (\d+) that is less than the current step (\d+)"
    r"|step:? (\d+) is less than (?:the )?current step:? (\d+)"
    r"|\bstep (\d+) < (\d+)[.;] dropping"
    r'|ignoring partial history record".{0,400}?"step":(\d+),"current":(\d+)'
)


@dataclass
class Axes:
    """The metrics that are optimizer steps, and the last value they had."""

    declared: set[str] = field(default_factory=set)
    last: float = float("nan")

    def declare(self, metric: Message) -> None:
        """Takes a MetricRecord (field 4: the step metric)."""
        for name in metric.get(4, []):
            text = name.decode("utf-8", "replace") if isinstance(name, bytes) else ""
            plain = vocabulary.plain(text)
            if plain in vocabulary.SURE_STEP or _PREFIX.sub("", plain) in vocabulary.SURE_STEP:
                self.declared.add(text)

    def is_step(self, name: str) -> bool:
        return name in self.declared or name.replace(".", "/") in _GLOBAL_STEP

    def steps(self, step: Floats, rows: NDArray[np.int64], values: Floats) -> Floats:
        """The rows' steps, where ``rows`` have one of the axes' ``values``; unchanged while there is no axis."""
        if not len(rows) and np.isnan(self.last):
            return step
        axis = np.full(len(step) + 1, np.nan)
        axis[0] = self.last
        axis[rows + 1] = values
        filled = axis[np.maximum.accumulate(np.where(np.isnan(axis), 0, np.arange(len(axis))))]
        self.last = float(filled[-1])
        return filled[1:]


@dataclass
class Dropped:
    """Collects dropped rows into stretches: steps that grow are one rollback, a step that falls begins the next."""

    stretches: list[list[int]] = field(default_factory=list)  # first step, last step, current step, rows, at

    def feed(self, line: str, at: int) -> bool:
        """True where the line says that a row was dropped."""
        match = _DROPPED.search(line)
        if match is None:
            return False
        step, current = (min(int(x), 2**62) for x in match.groups() if x)
        last = self.stretches[-1] if self.stretches else None
        if last and last[1] <= step:
            last[1], last[3] = step, last[3] + 1
        else:
            self.stretches.append([step, step, current, 1, at])
        return True

    def events(self, rows: Rows) -> None:
        for first, last, current, count, at in self.stretches:
            steps = f"step {first}" if first == last else f"steps {first} to {last}"
            text = f"W&B dropped {count} rows of {steps}: the run had already logged step {current}"
            rows.event("rows_dropped", text, level="warning", step=first, at=at)

    @property
    def rows(self) -> int:
        return sum(s[3] for s in self.stretches)
