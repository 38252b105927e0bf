"""Whether a log ends where one would have planned it to: at the last planned epoch, or at a round count of epochs or steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.run import endings, plan, reach
from forensics.run.plan import planned_steps, unit
from forensics.run.series import Floats, Ints, series
from parsers import arrow
from parsers.loss_names import EVAL
from parsers.name_rules import words
from parsers.records.vocabulary import WHOLE_HISTORY
from parsers.tables import Run

WHOLE = 2  # bound: epochs between the first and the last, by which the last is measured
# statistical: a log that is cut ends at such a count of epochs, or at the end of one of as many rows, once in ten; of fewer epochs no count is odd
ROUND, MANY = 10, 20
ROUNDER = 50  # statistical: where it is open whether epochs count from 0 or 1, a log that is cut ends there once in 25
ROUNDEST = 500  # statistical: 0, ..., 500 is one more than a round count, where a log that is cut ends once in 500
# statistical: of a log that is cut anywhere to end at a round step, which may count from 0 or from 1; unit: of fewer steps no count is odd
CHANCE, LEAST = 0.05, 1000
SAME, LONG = 3, 10  # statistical: three launches that are cut anywhere in ten steps end at the same one once in a hundred


@dataclass(frozen=True)
class Finish:
    """``says``: the line or the number that tells it, ``where``: its place; ``how``: it was said, by the program (``early``:
    which stopped itself before its plan) or its tracker, or the plan was reached, or it is a guess from numbers."""

    says: str
    where: str = ""
    how: str = "said"  # said | early | plan | guess


def last_epoch(run: Run) -> Finish | None:
    """The last planned epoch, as long as those between the first and it, where no step of an epoch's end is known."""
    planned, found = plan.of_epochs(run), _whole_epochs(run)
    if planned is None or found is None or plan.planned_steps(run) is not None:
        return None
    first, last = found
    if last != planned.value - (first == 0):
        return None
    from_0 = ", counted from 0," if first == 0 else ""
    return Finish(f"epoch {last}{from_0} of {planned.value} planned, as long as those before it", how="plan")


def round_epochs(run: Run) -> Finish | None:
    """A round count of epochs, the last one as long as those before it, in a log that names no plan."""
    if planned_steps(run) is not None or plan.of_epochs(run) is not None:
        return None
    found = _whole_epochs(run)
    if found is None:
        return _each_nth(run)
    first, last = found
    count = last - first + 1
    if first not in (0, 1):
        count = next((n for n in (last, last + 1) if n % ROUNDER == 0), 0)
    elif first == 0 and last % ROUNDEST == 0:
        count = last
    if count < MANY or count % ROUND:
        return None
    return Finish(f"its {count} epochs are a round number, and the last one is as long as those before it", how="guess")


def whole_last_epoch(run: Run) -> Finish | None:
    """The last epoch has all of its rows, of ten and more, and none of the next one was logged: a log that is cut anywhere hardly ends so. Where epochs are
    counted as they are done (Chainer), the last row is the first with its count."""
    rows = _epochs(run)[1]
    if planned_steps(run) is not None or plan.of_epochs(run) is not None or len(rows) < WHOLE + 2:
        return None
    if rows[-1] == 1 and _counted_when_done(run):
        rows = rows[:-1]
    elif _whole_epochs(run) is None:
        return None
    if rows[-1] < ROUND or len(np.unique(rows[1:])) > 1:
        return None
    return Finish(f"its last epoch has all of its {rows[-1]} rows, and none of another was logged", how="guess")


def _counted_when_done(run: Run) -> bool:
    """Whether each epoch is first named at the step that ends it: the steps of one, times its number, of steps that count from 1."""
    s = series(run, "epoch")
    if s is None or not s.usable.all() or s.step[0] <= 0:
        return False
    first = np.flatnonzero(np.diff(s.value, prepend=s.value[0]) == 1)
    length = s.step[first[0]] if len(first) else 0
    return bool(s.value[0] == 0 and len(first) == s.value[-1] and np.array_equal(s.step[first], length * s.value[first]))


def whole_history(run: Run) -> Finish | None:
    """Nothing but documents of whole curves: programs write them behind their loop."""
    stepped = endings.progress(run)
    written = [s for s in run.sources if s.path in stepped]
    if not written or any(WHOLE_HISTORY not in s.note for s in written):
        return None
    return Finish(f"{written[0].path} is a history that was written as a whole, as programs do behind their loop", how="guess")


def _each_nth(run: Run) -> Finish | None:
    """Epochs of which one in so many was logged, up to ten times as round a count."""
    epoch = _epochs(run)[0]
    stride = int(epoch[1] - epoch[0]) if len(epoch) >= MANY else 0
    if stride < 2 or (np.diff(epoch) != stride).any() or epoch[0] not in (0, stride) or epoch[-1] % (ROUND * stride):
        return None
    return Finish(f"its {epoch[-1]:.0f} epochs, of which every {stride}th was logged, are a round number", how="guess")


def _whole_epochs(run: Run) -> tuple[int, int] | None:
    """The first and the last epoch of the last attempt; None where they are not counted one by one, or the last is shorter than others."""
    epoch, rows = _epochs(run)
    if len(epoch) < WHOLE + 2 or (np.diff(epoch) != 1).any() or epoch[0] != int(epoch[0]) or rows[-1] < rows[1:-1].min():
        return None
    return int(epoch[0]), int(epoch[-1])


def _epochs(run: Run) -> tuple[Floats, Ints]:
    """The epochs of the last attempt, as they were logged, and how many rows each has."""
    s = series(run, "epoch")
    logged = np.zeros(0)
    if unit(run) == "epoch":
        m = run.tables["metrics"]
        mine = arrow.present(m["step"]) & (arrow.filled(m["attempt"], -1) == len(run.attempts) - 1)
        logged = arrow.values(m["step"])[mine].astype(np.float64)
    elif s is None and len(each := _validated(run)):
        logged = each
    elif s is not None:
        logged = s.value[s.usable & (s.attempt == s.attempt.max())]
    return np.unique(logged, return_counts=True)


def _validated(run: Run) -> Floats:
    """The rows of a table that count one by one and measure training and validation each: a row an epoch, whatever it is called."""
    train, held_out = series(run, "loss.train"), series(run, "loss.eval")
    if train is None or held_out is None or len(run.attempts) != 1 or not np.array_equal(train.step, held_out.step):
        return np.zeros(0)
    return train.step.astype(np.float64) if (np.diff(train.step) == 1).all() else np.zeros(0)


def round_steps(run: Run) -> Finish | None:
    """A digit and zeros, the last step or the one behind it, in a log that names no plan and prints often enough to seldom end there if cut.
    Environment steps come in rollouts and episodes: the last one goes past such a number, or is logged with the next and so never."""
    last = reach.last(run)
    if last is None or last + 1 < LEAST or unit(run) != "step" or reach.composed(run):
        return None
    if planned_steps(run) is not None or plan.of_epochs(run) is not None:
        return None
    apart = 10 ** (len(str(last + 1)) - 1)
    end = next((n for n in (last, last + 1) if n % apart == 0), None)
    every = reach.interval(run)
    if end is None and reach.rewarded(run):
        end = next((n for n in (round(last / apart) * apart,) if abs(n - last) <= every), None)
    if end is None or 2 * every > CHANCE * apart:
        return None
    return Finish(f"it ends at step {last}, and {end} is a round number", how="guess")


def evaluated_behind(run: Run) -> Finish | None:
    """One evaluation, behind everything else of its log and of several epochs that had none: what comes after each epoch comes sooner."""
    found = _whole_epochs(run)
    if found is None or planned_steps(run) is not None or plan.of_epochs(run) is not None:
        return None
    m = run.tables["metrics"]
    code, tags = arrow.codes(m["tag"])
    source, _ = arrow.codes(m["source"])
    rows = np.flatnonzero(np.isin(code, [i for i, tag in enumerate(tags) if EVAL.search(words(tag))]))
    if not len(rows) or np.bincount(code[rows]).max() > 1 or len(np.unique(source[rows])) > 1:
        return None
    at = arrow.filled(m["at"], -1)
    others = np.delete(at, rows)[np.delete(source, rows) == source[rows[0]]]
    if not len(others) or others.max() >= at[rows].min():
        return None
    return Finish(f"the only evaluation stands behind all {found[1] - found[0] + 1} epochs: {tags[code[rows[0]]]}", how="guess")


def as_long_as_others(run: Run) -> Finish | None:
    """Folds, seeds and repetitions that one log holds are as long as each other; of a log that names no plan."""
    last = reach.last(run)
    same = sum(end == last for end in run.ends)
    if last is None or same < SAME or 2 * same < len(run.ends) or reach.distinct(run) < LONG or plan.of_epochs(run) is not None:
        return None
    if planned_steps(run) is not None:
        return None
    return Finish(
        f"it is as long as {same - 1} of the {len(run.ends) - 1} other trainings that its log holds: {unit(run)} {last}", how="guess"
    )
