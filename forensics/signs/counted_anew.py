"""What counts along with the data, and begins anew at a restart: epochs, samples, the place in the file."""

from __future__ import annotations

import numpy as np

from forensics.run import endings, settings
from forensics.run.robust import median
from forensics.run.series import Ints, Series, names, series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re
from parsers.name_rules import words

EFFECTS = {"epochs_count_anew": "epoch", "samples_count_anew": "samples"}  # symptoms of their own, for which there is no detector
SUBJECT = "data_order"
AHEAD = 2  # unit: rows; the first one behind a restart may be an interval later than the run's first
RISES = 0.9  # bound: share of the distances; more falls are those of a place within each epoch
LEAST = 5  # bound: values of a count: its pace is the median of four distances
# a switch for where the next launch begins in the data, and for nothing else: of the Trainer, of fairseq, of loops
OF_DATA_ORDER = lazy_re(
    r"(?i)(?:.*[./])?(?:ignore_data_skip|reset_data(?:loader|_?iterator)?|skip_(?:seen_)?batches|resume_data(?:loader)?)"
)
_SAVED = lazy_re(r"[A-Za-z].{0,200}\d")  # the name of a file that a step or an epoch stands in: no switch
_PLACE = lazy_re(
    r"\b(?:pos|position|cursor|offset|samples?|sample id|consumed|seen|examples?|records?|rows?|docs?|documents?|sequences?|index|idx)\b"
)
_OTHER = lazy_re(r"\b(?:per|rate|speed|second|sec|ms|time|batch|lr|mean|avg|eval|val|valid|test|max|min|loss|acc)\b|/ ?s$")


def epochs_count_anew(s: Symptoms) -> Sign:
    """The number of the epoch, or the share of it that is done, falls back to the run's first while the steps go on: whoever orders samples by
    the epoch begins with the first order."""
    epoch = series(s.run, "epoch")
    if epoch is None:
        return cannot_tell("no epochs were logged.")
    rows = _in_order(epoch)
    number, step = epoch.value[rows], epoch.step[rows]
    back = np.flatnonzero(np.diff(number) < 0) + 1
    if not len(back):
        return absent(f"Epochs go on with the steps, from {number[0]:.3g} to {number[-1]:.3g}." if len(rows) else "No epoch has a number.")
    ahead = AHEAD * median(np.diff(number).clip(min=0))  # rows
    if (number[back] - number[0] > ahead).any():  # as where an epoch has another number of steps now
        return absent(f"At step {step[back[0]]} the number of the epoch falls to {number[back[0]]:.3g}, which is not where it began.")
    # the config of a later launch names what it went on from
    loaded = [t for t in settings.named(s.run, settings.RESUMED) if _SAVED.search(str(t.value))]
    restarts = max(len(s.run.attempts) - 1, len(endings.events(s.run, "resume")), len(loaded))
    # rows of another table in between fall to any number, and on one step; stages of a plan may each count their own
    if (number[back - 1] <= number[0] + ahead).any() or (step[back] <= step[back - 1]).any() or len(back) > restarts:
        return cannot_tell(f"the numbers of epochs fall {len(back)} times, and the log tells of {restarts} restarts.")
    at, times = int(back[0]), f", and so {len(back) - 1} times more" if len(back) > 1 else ""
    text = f"At step {step[at]} the number of the epoch falls from {number[at - 1]:.3g} to {number[at]:.3g} while the steps go on{times}."
    return seen(text, where=epoch.place(s.run, int(rows[at])), first=int(step[at]))


def samples_count_anew(s: Symptoms) -> Sign:
    """A count of samples, or a place in the data, falls back to the run's first at a restart while the steps go on."""
    resumed = [e["step"] for e in endings.events(s.run, "resume") if e["step"] is not None]
    if len(s.run.attempts) < 2 and not resumed:
        return does_not_arise("the run was not restarted.")
    places = [name for name in names(s.run, LEAST) if _PLACE.search(words(name)) and not _OTHER.search(words(name))]
    counts = [c for name in places if (c := series(s.run, name)) is not None and _counts(c)]
    for c in counts:
        rows = _in_order(c)
        step, x, attempt = c.step[rows], c.value[rows], c.attempt[rows]
        back = np.flatnonzero(np.diff(x) < 0) + 1
        anew = len(back) > 0 and bool(
            (x[back] - x[0] <= AHEAD * median(np.diff(x).clip(min=0))).all() and (step[back] > step[back - 1]).all()
        )
        if anew and all(attempt[i] != attempt[i - 1] or any(step[i - 1] <= r <= step[i] for r in resumed) for i in back.tolist()):
            at = int(back[0])
            text = f"{c.tag} falls from {x[at - 1]:.0f} to {x[at]:.0f} at step {step[at]}, where the run was restarted; at first it was {x[0]:.0f}."
            return seen(text, where=c.place(s.run, int(rows[at])), first=int(step[at]))
    if not counts:
        return cannot_tell("no count of the samples was logged.")
    return absent(f"{counts[0].tag} goes on over the restart.", where=counts[0].place(s.run, 0))


def _counts(c: Series) -> bool:
    """Whether a metric rises in whole numbers but for a few falls."""
    x = c.value[_in_order(c)]
    return len(x) >= LEAST and bool((x == np.floor(x)).all() and x.min() >= 0 and np.mean(np.diff(x) > 0) >= RISES)


def _in_order(c: Series) -> Ints:
    rows = np.flatnonzero(c.usable)
    return rows[np.argsort(c.step[rows], kind="stable")]
