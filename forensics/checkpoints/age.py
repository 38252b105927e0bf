"""How old the parts of a checkpoint are, by their own counts, and whether they go together: optimizer, schedule, generators.

Only ``spikes`` reads values: the two moments of Adam together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics.checkpoints.describe import Checkpoint
from forensics.checkpoints.looks import MOMENTS, Found, finding, measured, others
from parsers.checkpoints.contents import Tensor, chunks
from parsers.checkpoints.statistics import values
from parsers.checkpoints.unreadable import Unreadable
from parsers.lazy_regex import lazy_re

SPAM = 5000.0  # g^2 > 5000 v is a spike of the gradient (Huang et al., SPAM, 2025)
SPIKED = 0.01  # of a tensor's elements; single ones are nothing to speak of


@dataclass(frozen=True)
class Counters:
    """What the parts of a checkpoint say of their age; None where they do not say."""

    label: int | None  # of the file or its name
    optimizer: int | None
    scheduler: int | None
    states: int  # parameters that the optimizer has state for
    params: int  # parameters that it was given
    adam: bool
    lr: float | None

    @property
    def age(self) -> int | None:
        return max((x for x in (self.optimizer, self.label) if x is not None), default=None)


def numbers(c: Checkpoint, rule: re.Pattern[str]) -> dict[str, float]:
    """The plain numbers of a checkpoint whose names match."""
    return {k: v for k, v in c.contents.values.items() if type(v) in (int, float) and rule.search(k)}


def counters(c: Checkpoint) -> Counters:
    """What it counts; looked up once, for many ask."""
    if c.counted is None:
        c.counted = _counters(c)
    found: Counters = c.counted
    return found


def _counters(c: Checkpoint) -> Counters:
    steps, ages, params, states = [], [], set(), set()
    lr, adam = None, False
    for name, value in c.contents.values.items():
        source, _, plain = name.rpartition(":")
        last = plain.rpartition(".")[2]
        in_optimizer = "optim" in plain or "optim" in source or COUNT.search(plain) is not None
        number = type(value) in (int, float) and math.isfinite(value)
        if last == "step" and in_optimizer and number and "sched" not in plain:
            steps.append(int(value))
        elif last in ("last_epoch", "last_batch_iteration") and number:
            ages.append(int(value))
        elif m := re.search(r"param_groups\.(\d+)\.params\.(\w+)$", plain):
            params.add((source, m[0]))
        elif "param_groups" in plain:
            adam |= ".betas" in plain
            lr = max(lr or 0.0, value) if last == "lr" and number else lr
    for t in c.contents.tensors:
        if t.role in MOMENTS or (t.role == "other" and _STATE.search(t.name)):
            states.add(t.name.rpartition(".")[0])
    return Counters(c.step, max(steps, default=None), max(ages, default=None), len(states), len(params), adam, lr)


COUNT = lazy_re(r"(^|[.:])state\.[^.]+\.step$")  # wherever the optimizer's state dict lies: `opt.state.0.step`
_STATE = lazy_re(r"(^|[.:])state\.[^.]+\.\w+$")  # Muon and SGD keep a momentum_buffer


def counters_disagree(c: Checkpoint) -> Iterator[Found]:
    """For one checkpoint alone; what several of a run say together is forensics.detectors.checkpoint_state."""
    n = counters(c)
    if n.optimizer is not None and n.label and n.optimizer < 0.8 * n.label and n.label > 20:
        whole = n.optimizer > 0 and n.label % n.optimizer == 0
        why = f"one for {n.label // n.optimizer} (accumulation), or it began anew on the way" if whole else "it began anew on the way"
        title = f"The optimizer has counted {n.optimizer} steps in the checkpoint of step {n.label}: {why}"
        yield finding("optimizer_behind", "info" if whole else "warning", title)
    k, rest = divmod(n.scheduler or 0, n.optimizer or n.label or 1)
    if (n.optimizer or n.label) and n.scheduler != n.label and not rest and 2 <= k <= 64:
        title = f"The schedule has been stepped {k} times for each step of the optimizer ({n.scheduler} against {n.optimizer or n.label})"
        yield finding("schedule_ahead", "warning", f"{title}: for each micro-batch, or each process")
    elif n.scheduler is not None and n.optimizer and 4 < n.scheduler < 0.8 * n.optimizer and not _by_epoch(n.scheduler, n.optimizer):
        title = f"The schedule is at {n.scheduler}, though the optimizer has counted {n.optimizer} steps: it was reset, or counts something else"
        yield finding("schedule_behind", "warning", title)


def _by_epoch(age: int, steps: int) -> bool:
    """Whether so many steps can be `age` epochs of equal length, with one more begun: then a schedule stepped by the epoch is sound."""
    return any(age - 1 <= steps // k <= age + 1 for k in {max(steps // age, 1), steps // age + 1, -(-steps // (age + 1))})


def optimizer(c: Checkpoint) -> Iterator[Found]:
    """Missing, empty or fresh state, and what a resume would lack besides."""
    n, values = counters(c), c.contents.values
    if n.adam and not n.states and n.params and (n.label or 0) > 1:
        yield finding(
            "optimizer_empty", "warning", f"The optimizer state is empty at step {n.label}: resuming from it resets the optimizer moments"
        )
    elif n.states and n.params > n.states and not any(k.endswith(".func_evals") for k in values):  # LBFGS keeps one for all
        title = f"{n.params - n.states} of {n.params} parameters of the optimizer have no state: they never had a gradient (frozen, or not used)"
        yield finding("optimizer_partial", "info", title)
    seconds = measured(c, "exp_avg_sq")
    still = [t.name for t, s in seconds if s.count and s.zeros == s.count]
    if seconds and all(s.zeros == s.count for _, s in seconds):
        title = "All second moments are zero: the optimizer has not taken a step since it was made"
        yield finding("optimizer_fresh", "warning", title)
    elif still:
        yield finding("no_gradient", "info", f"{len(still)} tensors have second moments of zero: no gradient reached them", still)
    names = (*(f.name.lower() for f in c.contents.files), *values, *(t.name for t in c.contents.tensors))
    if c.kind == "full" and c.path.is_dir() and not any(re.search(r"rng|random_state", name) for name in names):
        title = "No state of random generators or samplers: a resume will draw other data, or the first ones again"
        yield finding("no_rng_state", "info", title)


def spikes(c: Checkpoint) -> Iterator[Found]:
    """Elements whose last gradient broke the rule g^2 > 5000 v, as far as the moments still show it.

    With v0 the average before that step and v0/k its bias-corrected value, k = 1 - b2^t, a gradient of g^2 = S v0 leaves
    m^2/v = (1-b1)^2 S / (b2 + (1-b2) S), S = 5000/k: 8.3 for the usual betas late in training. Early on a steady gradient
    gives m^2/v = 1/k, as much; where that is not well below, nothing can be told.
    """
    n = counters(c)
    b1, b2 = (next((v for k, v in c.contents.values.items() if k.endswith(f"betas.{i}")), d) for i, d in ((0, 0.9), (1, 0.999)))
    if not n.adam or not n.optimizer or not (0 < b1 < 1 and 0 < b2 < 1):
        return
    k = 1 - b2**n.optimizer
    limit = (1 - b1) ** 2 * SPAM / k / (b2 + (1 - b2) * SPAM / k)
    if limit < 2 / k:
        return
    firsts, seconds = ({t.name.rpartition(".")[0]: t for t, _ in measured(c, role)} for role in MOMENTS)
    found = []
    for name in firsts.keys() & seconds.keys():
        m, v = firsts[name], seconds[name]
        if m.shape == v.shape and m.layout == v.layout:
            count = _over(m, v, limit)
            if count >= SPIKED * m.count and count > 1:
                found.append((count / m.count, count, m.name))
    if found:
        share, _, name = max(found)
        title = f"{share:.1%} of {name} had a gradient with g^2 > 5000 v in the last steps{others(found, 'parts of ')}"
        yield finding("gradient_spike", "info", title, [x for _, _, x in sorted(found, reverse=True)])


def _over(m: Tensor, v: Tensor, limit: float) -> int:
    n = 0
    try:
        for x, y in zip(chunks(m), chunks(v), strict=True):
            first, second = values(x, m.dtype), values(y, v.dtype)
            with np.errstate(over="ignore", invalid="ignore"):
                n += int(np.count_nonzero(np.square(first, dtype=np.float64) > limit * np.maximum(second, 1e-30)))
    except (ValueError, Unreadable, OSError):
        return 0
    return n
