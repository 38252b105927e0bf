"""How long the run was to be: its planned length on the axis that its steps count, where that stands, and what contradicts it.

A plan counts something: steps, environment steps or epochs. It is told in the unit of the log's own labels and never mixed with
another axis. Of several sources the nearest to the loop is believed: what the loop prints beside its steps ("120/7272"), then
what it was told to do in steps, then epochs times the steps of an epoch. A number that the run has gone past counts something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics.run import endings, reach, settings
from forensics.run.epoch_rate import EXACT, steps_per_epoch
from forensics.run.metric_columns import arrays
from forensics.run.once import once
from forensics.run.series import names, series
from forensics.run.settings import Setting
from parsers import arrow
from parsers.records.vocabulary import BAR_AT, BAR_HERE, BAR_OF, BESIDE
from parsers.tables import Run

_LOOP_TAGS = ("max_steps", "total_steps", "max_train_steps")  # totals that a loop logs beside each step
_DECAY = (("niter", "niter_decay"), ("n_epochs", "n_epochs_decay"))  # CycleGAN and its heirs train both, in epochs
_PAST = 1.02  # times the plan: rollouts and last batches overshoot, another axis is off by more
_PAST_ROUNDS = 1.5  # environment steps come in rounds, each rounded up (brax ppo/train.py); another count of them is off by a whole factor


@dataclass(frozen=True)
class Plan:
    """``value`` counts ``unit`` ("step" or "epoch"); ``says`` is the source in words, ``against`` other numbers that it beats,
    ``slack`` times the plan a run of that length may come to."""

    value: int
    unit: str
    says: str
    where: str
    against: tuple[str, ...] = ()
    slack: float = _PAST


def planned_steps(run: Run) -> int | None:
    """Planned length on the axis of the metrics table; None where nothing tells it."""
    found = plan(run)
    return found.value if found is not None else None


@once
def plan(run: Run) -> Plan | None:
    """The plan of the last launch, on the axis of the metrics table."""
    last = reach.last(run)
    found = list(_epoch_plans(run) if unit(run) == "epoch" else _step_plans(run))
    if unit(run) == "epoch" and not reach.noted(run):  # steps that a log names beside equal epochs: one step an epoch
        found += _told_steps(run)
    found += _bar_beside(run)
    fits = [p for p in found if last is None or last <= p.value * p.slack + reach.interval(run)]
    if not fits:
        return None
    best = fits[0]
    rivals = dict.fromkeys(f"{p.value:,} by {p.says} ({p.where})" for p in found if p.value and abs(p.value - best.value) > 1)
    return Plan(best.value, best.unit, best.says, best.where, tuple(rivals)[:3])


def reached(run: Run) -> bool:
    """Whether the last step is the planned one, within a logging interval; False where no plan is known."""
    found, last, every = plan(run), reach.last(run), reach.interval(run)
    short = reach.widest(run) if reach.rewarded(run) else every  # a line for so many episodes, each as long as it lasts
    return found is not None and last is not None and found.value - short <= last <= found.value * found.slack + every


@once
def of_epochs(run: Run) -> Plan | None:
    """The plan in epochs, whatever the steps count."""
    return next(iter(_epoch_plans(run)), None)


@once
def labelled(run: Run) -> Plan | None:
    """The plan in the labels that the log prints: epochs where it names no step through the run."""
    return of_epochs(run) if counts_epochs(run) else plan(run)


@once
def counts_epochs(run: Run) -> bool:
    """Are epochs the labels that the log prints? So where no line names a step through the run, unless it is all of one epoch."""
    epoch = series(run, "epoch")
    return (
        reach.composed(run)
        and epoch is not None
        and not _of_last([s for s in settings.named(run, "total_steps") if s.key == "total_steps"], run)  # it counts them itself
        and (len(np.unique(epoch.value)) > 1 or any(p.value > 1 for p in _epoch_plans(run)))
    )


@once
def unit(run: Run) -> str:
    """What the steps of the metrics table count: "epoch" where the log names nothing finer, else "step"."""
    if not run.attempts:  # not one step: whatever plan and saves are told in
        return "epoch" if (any(_epoch_plans(run)) or reach.saves_epochs(run)) and not any(_told_steps(run)) else "step"
    noted = reach.noted(run)
    last = reach.last(run)
    if noted and last is not None:
        columns = arrays(run)
        of_noted = columns["stepped"] & np.isin(columns["source"], [i for i, s in enumerate(columns["sources"]) if s in noted])
        if of_noted.any() and abs(int(columns["step"][of_noted].max()) - last) <= 1:
            return "epoch"
    epoch = series(run, "epoch")
    if epoch is not None and len(epoch) > 2 and len(np.unique(epoch.step)) > 2:
        apart = epoch.step - epoch.value
        beyond = last is not None and last > int(epoch.step.max()) + 1  # another file counts on, in steps
        return "epoch" if (apart == apart[0]).all() and abs(apart[0]) <= 1 and not beyond else "step"
    epochs = [s for s in _of_launch(run, "epochs") if (_whole(s) or 0) > 1]
    counted, first = reach.distinct(run), reach.first(run)
    alone = not any(_whole(s) for s in [*_of_launch(run, "max_steps"), *_of_launch(run, "environment_steps")])
    return "epoch" if alone and first in (0, 1) and any(_whole(s) == counted for s in epochs) else "step"


# -- sources, nearest to the loop first ---------------------------------------------------------------------------------


def _step_plans(run: Run) -> Iterator[Plan]:
    yield from _told_steps(run)
    for p in _epoch_plans(run):
        yield from _whole_epochs(run, p)


def _told_steps(run: Run) -> Iterator[Plan]:
    told = _of_last([s for s in reversed(settings.named(run, "total_steps")) if s.key == "total_steps"], run)  # console totals, too
    yield from (Plan(n, "step", "total_steps, as the log says it", s.where) for s in told if (n := _whole(s)) is not None)
    yield from _logged_totals(run)
    yield from _no_time_left(run)
    yield from _beside_steps(run)
    of_environment = ["environment_steps"] * reach.counts_environment_steps(run)
    for what in ["max_steps", *of_environment, *(["rollout_steps"] if of_environment and reach.rewarded(run) else [])]:
        slack = _PAST_ROUNDS if what != "max_steps" and reach.rewarded(run) else _PAST
        counts = ((_whole(s), s) for s in _of_launch(run, what))
        yield from (Plan(n, "step", f"the setting {s.key}", s.where, slack=slack) for n, s in counts if n is not None)


def _epoch_plans(run: Run) -> Iterator[Plan]:
    yield from (Plan(n, "epoch", "what the loop prints beside its epochs", where) for n, where in said(run, "epochs"))
    for first, second in _DECAY:
        both = [settings.named(run, name) for name in (first, second)]
        if all(both) and all(_whole(s[-1]) is not None for s in both):
            total = sum(_whole(s[-1]) or 0 for s in both)
            yield Plan(total, "epoch", f"the settings {first} + {second}", both[0][-1].where)
    yield from (
        Plan(n, "epoch", f"the setting {s.key}", s.where) for s in _of_launch(run, "epochs") if (n := _whole(s)) is not None and n > 0
    )


def said(run: Run, what: str) -> list[tuple[int, str]]:
    """(number, place) of what the lines of the last launch say of their length, the last word first: epochs, steps_per_epoch,
    micro_batches_per_epoch, reached (parsers.console_format.plan_lines)."""
    found = [
        Setting(what, e["text"].partition(": ")[2], run.where(e["source"], e["at"]), e["attempt"])
        for e in reversed(endings.events(run, "plan"))
        if e["text"].startswith(f"{what}: ")
    ]
    return [(n, s.where) for s in _of_last(found, run) if (n := _whole(s)) is not None]


def _of_launch(run: Run, what: str) -> list[Setting]:
    """Settings of this meaning that hold for the last launch: better names first, then shallow keys, then the last word."""
    found = []
    for name in settings.names_of(what):
        of_name = _of_last(list(reversed(settings.named(run, name))), run)
        found += sorted(of_name, key=lambda s: len(re.findall(r"[./]", s.key)))
    return found


def _of_last(told: list[Setting], run: Run) -> list[Setting]:
    """Those that the last launch said; else those that belong to none; else all."""
    last = len(run.attempts) - 1
    return [s for s in told if s.attempt == last] or [s for s in told if s.attempt is None] or told


def _logged_totals(run: Run) -> Iterator[Plan]:
    """A total that stands beside each step as if it were a metric ({'loss': ..., 'step': 472, 'max_steps': 7272})."""
    for tag in _LOOP_TAGS:
        s = series(run, f"other/{tag}")
        if s is not None and len(s) and s.value[-1] == s.value[-1] and s.value[-1] == int(s.value[-1]) >= 0:
            yield Plan(int(s.value[-1]), "step", f"{tag}, logged beside each step", s.place(run, -1))


def _no_time_left(run: Run) -> Iterator[Plan]:
    """A remaining time of 0 at the last step: the planned length was reached there (detectron2 labels it with one step less)."""
    for name in ("axis/eta_seconds", "other/eta_seconds", "axis/eta", "other/eta"):
        s, last = series(run, name), reach.last(run)
        if s is not None and last is not None and len(s) > 1 and s.value[-1] == 0 < s.value[-2] and s.step[-1] == last:
            yield Plan(last + ((last + 1) % reach.interval(run) == 0), "step", f"{s.tag} is 0 at the last step", s.place(run, -1))


def _bar_beside(run: Run) -> Iterator[Plan]:
    """The total of a progress bar without a name (often in a job's stderr), where the bar stands where the steps do."""
    at, of, last = said(run, BAR_AT) or said(run, BAR_HERE), said(run, BAR_OF), reach.last(run)
    if at and of and last is not None and abs(at[0][0] - last) <= reach.interval(run):
        yield Plan(of[0][0], unit(run), "the total of the progress bar beside it", of[0][1])


def _beside_steps(run: Run) -> Iterator[Plan]:
    """A total without a word beside the steps ("[1619/2000]"): where they start again it is that of an epoch."""
    told = said(run, BESIDE) if len(run.attempts) == 1 and series(run, "epoch") is None else []
    s = (series(run, "loss.train") or next((series(run, name) for name in names(run, 3)), None)) if told else None
    if s is not None and len(s) > 2 and len({n for n, _ in told}) == 1 and (np.diff(s.step) >= 0).all():
        yield Plan(told[0][0], "step", "the total beside its steps", told[0][1])


def _whole_epochs(run: Run, epochs: Plan) -> Iterator[Plan]:
    """Epochs times the steps of an epoch, as the loop says them or as they were measured."""
    accumulation = settings.number(run, "accumulation") or 1
    for key, per_step, counted in (("steps_per_epoch", 1.0, "steps"), ("micro_batches_per_epoch", accumulation, "micro-batches")):
        for n, where in [x for x in said(run, key) if x[0]][:1]:
            steps = int(n * epochs.value // per_step)
            yield Plan(steps, "step", f"{epochs.says}, times {n:,} {counted} an epoch", f"{epochs.where}; {where}")
    epoch, last = series(run, "epoch"), reach.last(run)
    if epoch is None or last is None or not len(epoch):
        return
    reached, at = float(epoch.value[-1]), int(epoch.step[-1])
    closed = any(t.endswith("train_runtime") for t in arrow.distinct(run.tables["metrics"]["tag"]))
    if closed and reached > 0 and round(reached) == epochs.value and at == last:  # the Trainer's closing summary stands at its last step
        yield Plan(last, "step", f"{epochs.says}, done at the closing summary", epoch.place(run, -1))
    elif (rate := steps_per_epoch(epoch, epochs.value)) is not None and abs(round(rate * epochs.value) - rate * epochs.value) <= EXACT:
        yield Plan(round(rate * epochs.value), "step", f"{epochs.says}, times {rate:,.6g} steps an epoch as measured", epoch.place(run, -1))


# -- the axis -----------------------------------------------------------------------------------------------------------


def _whole(s: Setting) -> int | None:
    """The value as a plan: a whole number that is not negative (-1 stands for "by the other setting")."""
    n = settings.as_number(s.value)
    return int(n) if n is not None and 0 <= n < 1e12 and n == int(n) else None
