"""How far the steps of the metrics table came, and what the parsers say that they stand for."""

from __future__ import annotations

import numpy as np

from forensics.run import endings
from forensics.run.once import once
from forensics.run.series import parts, series
from parsers import arrow
from parsers.lazy_regex import lazy_re
from parsers.records.vocabulary import COMPOSED_STEPS, EPOCH_STEPS
from parsers.tables import Run

_OF_ALL = lazy_re(r"[\[(,:|] *(\d{1,9}) ?/ ?(\d{1,9}) *[\]),|\s]")
# bound: characters of a line that hold its place; unit: of the distances between lines, whose last one may not come out even
LINE, MORE = 200, 1.5
LATEST = 10  # bound: steps at the end of a log between which distances are compared


def noted(run: Run) -> set[str]:
    """The files of which a parser says that they count epochs."""
    return {s.path for s in run.sources if EPOCH_STEPS in s.note}


def composed(run: Run) -> bool:
    """Are the steps of the table made of an epoch and an iteration in it, because the log names none through the run?"""
    return any(COMPOSED_STEPS in s.note for s in run.sources) and series(run, "epoch") is not None


def last(run: Run) -> int | None:
    return max((a["steps"][1] for a in run.attempts), default=None)


def first(run: Run) -> int | None:
    return min((a["steps"][0] for a in run.attempts), default=None)


def saved(run: Run) -> int | None:
    """How far a log that measures nothing came by what it says of its saves: what saves has trained."""
    found = _saves(run)
    return found[-1]["step"] if found else None


def saves_epochs(run: Run) -> bool:
    """Do the saves of such a log name the epochs that they stand behind?"""
    return any("epoch" in e["text"].lower() for e in _saves(run)[-1:])


def _saves(run: Run) -> list[endings.Event]:
    return [e for e in endings.events(run, "checkpoint_saved") if e["step"]] if not run.attempts else []


@once
def distinct(run: Run) -> int:
    return len(arrow.ascending(run.tables["metrics"]["step"]))


def interval(run: Run) -> int:
    step = arrow.known(run.tables["metrics"]["step"])
    gaps = np.diff(np.unique(step[-20000:]))
    return max(int(np.median(gaps)), 1) if len(gaps) else 1


def widest(run: Run) -> int:
    """The widest of the last distances between two logged steps."""
    step = np.unique(arrow.known(run.tables["metrics"]["step"])[-20000:])
    return int(np.diff(step[-LATEST:]).max()) if len(step) > 1 else 1


def counts_environment_steps(run: Run) -> bool:
    """False where the log counts its environment steps apart from the steps that it is labelled with."""
    for s in (s for name in ("axis/timesteps", "other/timesteps", "rl.timesteps") for s in parts(run, name)):
        if len(s) and not np.array_equal(s.value, s.step):
            return False
    return True


def within_epoch(run: Run) -> bool:
    """Does a log whose steps are made of epoch and iteration end in an epoch, more than a line before its last iteration (``[0][1200/2028]``)?"""
    end = last(run)
    if end is None or not composed(run):
        return False
    said = [(int(m[1]), int(m[2])) for e in endings.last_lines(run).values() for m in _OF_ALL.finditer(str(e["text"])[:LINE])]
    # the step is of whole epochs and this iteration: "[11/30 22:11:05]" is a day
    return any(n - i > MORE * interval(run) and (end - i) % n == 0 for i, n in said if n)


def rewarded(run: Run) -> bool:
    """Does the run log rewards or episodes? In other runs a number of timesteps may be one of a diffusion process."""
    return any(n.startswith("rl.") for n in arrow.distinct(run.tables["metrics"]["name"]))
