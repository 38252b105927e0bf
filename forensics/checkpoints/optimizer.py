"""The optimizer of one checkpoint beside its weights: state that is lost, moments that cannot be, counts and rates that disagree."""

from __future__ import annotations

import contextlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from forensics.checkpoints.age import COUNT, counters, numbers
from forensics.checkpoints.describe import Checkpoint, open_checkpoint
from forensics.checkpoints.layers import STARTED
from forensics.checkpoints.looks import Found, finding, is_state, measured
from forensics.checkpoints.weights import numbered
from forensics.errors import ForensicsError
from parsers.checkpoints.contents import Tensor
from parsers.formats import checkpoint_files
from parsers.lazy_regex import lazy_re

BESIDE = 3  # saves beside one, opened for their names alone
FEW = 0.1  # of the parameters: more were frozen for a while, or see few batches (experts)
APART = 1.5  # times: rates that a schedule set and someone changed by hand within a warmup differ by less, mostly
FIRST = (0.2, 0.99)  # of the base rate: a schedule's first rate is nearly nothing (warmup), or all of it
TINY_SCALE = 1.0  # of losses: torch begins at 65536 and halves at each overflow, healthy runs stay above
_ROOT = lazy_re(r"(?i)(.*[:.])?(optimi[sz]er(_state(_dict|s)?)?|optim(_state_dict)?)(\.\d+)?")
_MOMENTUM = lazy_re(r"param_groups\.\d+\.momentum$")
_USED = lazy_re(r"param_groups\.\d+\.lr$")
_SAID = lazy_re(r"(?i)^(?=.*?sched).*\._last_lr\.\d+$")
_BASE = lazy_re(r"(?i)^(?=.*?sched).*\.base_lrs\.\d+$")
_SCALE = lazy_re(r"(?i)(?:^|[.:])(?=\w*?scaler)\w++(?:\.\w++)?[.:](?:_?scale|cur_scale|loss_scale|loss_scaler\d*\.loss_scale)$")


def _started(c: Checkpoint) -> bool:
    n = counters(c)
    return max(n.label or 0, n.optimizer or 0, n.scheduler or 0) >= STARTED


def missing(c: Checkpoint) -> Iterator[Found]:
    """No optimizer where the rest of the training's state is there, or one that lost what it had to remember."""
    if not _started(c):
        return
    values = c.contents.values
    names = [*values, *(t.name for t in c.contents.tensors)]
    rest = [n for n in names if re.search(r"(?i)last_epoch|last_batch_iteration|growth_tracker|rng_state|random_state", n)]
    rest += [f.name for f in c.contents.files if re.search(r"(?i)^(scheduler|rng_state|random_states|scaler)", f.name)]
    if c.kind == "weights" and rest and not any(re.search(r"(?i)model_states|optim", f.name) for f in c.contents.files):
        title = f"No optimizer state at step {c.step}, though the rest of the training state is there ({rest[0]}): resuming from it resets the optimizer moments"
        yield finding("optimizer_missing", "info" if _never_saved(c) else "warning", title)
        return
    buffers = [v is None for n, v in values.items() if n.endswith(".momentum_buffer")]
    momentum = any(v > 0 for v in numbers(c, _MOMENTUM).values())
    bare = any(n.endswith(".state") and v == "{}" and _ROOT.fullmatch(n.removesuffix(".state")) for n, v in values.items())
    groups = any("param_groups." in n for n in values)
    plain = any(n.endswith(".dampening") for n in values) and not momentum  # SGD remembers nothing
    if (bare and groups and not plain and not counters(c).adam) or (momentum and buffers and all(buffers)):
        title = f"The optimizer's state is empty at step {c.step}: a resume begins without what it had gathered"
        yield finding("optimizer_empty", "warning", title)


def _never_saved(c: Checkpoint) -> bool:
    """Whether other saves lie beside this one and hold no optimizer, either: then the run means it (weights alone, adapters)."""
    kinds: list[str] = []
    for path in sorted(c.path.parent.iterdir()):
        alike = path != c.path and path.suffix == c.path.suffix and path.is_dir() == c.path.is_dir()
        if alike and checkpoint_files.step_of(path) is not None and len(kinds) < BESIDE:
            with contextlib.suppress(ForensicsError, OSError):
                kinds.append(open_checkpoint(path).kind)
    return bool(kinds) and not {"full", "optimizer"} & set(kinds)


def moments(c: Checkpoint) -> Iterator[Found]:
    """Second moments below zero, first moments that are gone, moments of other shapes than their weights."""
    firsts, seconds = measured(c, "exp_avg"), measured(c, "exp_avg_sq")
    squares = [*seconds, *((t, s) for t, s in measured(c, "other") if is_state(t.name))]
    if negative := [t.name for t, s in squares if s.negative]:
        title = f"{len(negative)} second moments hold values below zero, which no square is: {negative[0]} first"
        yield finding("moment_negative", "critical", title, negative)
    moved = any(s.zeros < s.count for _, s in seconds)
    if firsts and moved and _started(c) and all(s.zeros == s.count for _, s in firsts):
        yield finding("moment_zero", "warning", "All first moments are zero where second moments are not: they were lost or reset")
    buffers = [s for t, s in measured(c, "other") if t.name.endswith(".momentum_buffer") and s.count]
    if buffers and _started(c) and all(s.zeros == s.count for s in buffers):
        yield finding("moment_zero", "warning", "All momentum buffers are zero: the optimizer has forgotten its steps")
    held = {(t.name.rpartition(".")[0], t.shape, s.fingerprint) for t, s in seconds}
    same = [t.name for t, s in firsts if t.count > 1 and s.absmax and (t.name.rpartition(".")[0], t.shape, s.fingerprint) in held]
    if same:
        title = f"{len(same)} first moments are equal to their second ones, {same[0]} first: one was written over the other"
        yield finding("moment_same", "warning", title, same)
    yield from _shapes(c)


def _shapes(c: Checkpoint) -> Iterator[Found]:
    pairs: defaultdict[str, list[Tensor]] = defaultdict(list)
    for t in c.contents.tensors:
        if t.name.endswith((".exp_avg", ".exp_avg_sq", ".momentum_buffer")):
            pairs[t.name.rpartition(".")[0]].append(t)
    odd = [(a.name, list(a.shape), list(b.shape)) for a, *others in pairs.values() for b in others if a.shape != b.shape]
    held, places, weights = numbered(c)
    if len(held) == len(weights) and sorted(held) == list(range(len(held))):
        unlike = [(w.name, list(w.shape), list(held[i])) for i, w in enumerate(weights) if held[i] != w.shape]
        if len(unlike) <= max(2, 0.2 * len(weights)):  # more: another order
            odd += unlike
    if odd:
        name, a, b = odd[0]
        title = f"{len(odd)} moments have other shapes than their weights: {name} is {a}, its moment {b}"
        names = [n for n, _, _ in odd]
        ours = {i for i, w in enumerate(weights) if w.name in names}
        yield finding("moment_shape", "critical", title, [*names, *(n for n, i in places.items() if i in ours)])


def steps(c: Checkpoint) -> Iterator[Found]:
    """Counts of single parameters that are not those of the others; a count far beyond the label."""
    groups: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for name, value in numbers(c, COUNT).items():
        groups[name.rpartition("state.")[0]][name] = value
    apart = False
    for counts in groups.values():
        usual, _ = Counter(counts.values()).most_common(1)[0]
        odd = {k: v for k, v in counts.items() if v != usual}
        if odd and len(odd) <= max(1, FEW * len(counts)) and len(counts) >= 4:
            apart = True
            k, v = next(iter(odd.items()))
            far = abs(v - usual) > max(2, 0.05 * usual)  # of the steps: a few without a gradient are usual
            title = f"{k} is {v:.0f} where the other parameters have counted {usual:.0f} steps"
            yield finding("step_counts", "warning" if far else "info", title, odd)
    n = counters(c)
    if n.optimizer and n.label and n.label > 1 and n.optimizer > 1.2 * n.label + 20 and not apart:
        title = f"The optimizer has counted {n.optimizer} steps in the checkpoint of step {n.label}: the label counts something else, or the state is of another run"
        yield finding("optimizer_ahead", "info", title)


def rates(c: Checkpoint) -> Iterator[Found]:
    """Learning rates that are none, and a schedule that says another one than the optimizer uses."""
    used, said = numbers(c, _USED).values(), numbers(c, _SAID).values()
    bad = [v for v in used if not math.isfinite(v) or v < 0]
    if bad:
        yield finding("rate", "critical", f"The optimizer's learning rate is {bad[0]}")
        return
    pairs = zip(sorted(said), sorted(used), strict=True) if len(said) == len(used) and _started(c) else ()
    apart = [(a, b) for a, b in pairs if math.isfinite(a) and max(a, b) > APART * min(a, b) and max(a, b) > 1e-12]
    if apart:
        a, b = apart[0]
        title = f"The schedule has set a learning rate of {a:.4g}, the optimizer holds {b:.4g}: one of them was not restored"
        yield finding("rate", "warning", title)


def schedule_reset(c: Checkpoint) -> Iterator[Found]:
    """A schedule that says it has not begun, with a rate that belongs to a later step."""
    n, others = counters(c), re.compile(r"start_factor|num_bad_epochs|_schedulers")
    if n.scheduler != 0 or (n.optimizer or 0) < 20 or any(map(others.search, c.contents.values)):
        return
    base, last = list(numbers(c, _BASE).values()), list(numbers(c, _SAID).values())
    if len(base) == len(last) and any(b > 0 and FIRST[0] < x / b < FIRST[1] for b, x in zip(base, last, strict=True)):
        title = f"The schedule is at its start, though the optimizer has counted {n.optimizer} steps, yet its rate is {last[0]:.4g} of {base[0]:.4g}: its count was lost"
        yield finding("schedule_behind", "warning", title)


def scaler(c: Checkpoint) -> Iterator[Found]:
    """The loss scale of half precision after a collapse."""
    for name, value in numbers(c, _SCALE).items():
        if not math.isfinite(value) or value <= 0:
            yield finding("scaler", "critical", f"The loss scale ({name}) is {value}: no step can be taken with it")
            return
        if value < TINY_SCALE:
            title = (
                f"The loss scale ({name}) has fallen to {value:.3g}, from 65536 where it usually begins: gradients overflow at every step"
            )
            yield finding("scaler", "warning", title)
            return
