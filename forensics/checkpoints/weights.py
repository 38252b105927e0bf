"""What the weights of one checkpoint tell by their statistics: units that are dead, a start that left its recipe."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from forensics.checkpoints.age import Counters, counters
from forensics.checkpoints.describe import Checkpoint, plain_name
from forensics.checkpoints.looks import TABLES, Found, Measured, finding, kin, measured, of_weights, others, parameters
from parsers.checkpoints.contents import Tensor
from parsers.checkpoints.value_stats import Stats

LINES = 0.01  # of the rows or columns; single ones are padding or chance
MASS = 0.25  # of them: a quarter of a layer that is zero is no accident of training
SETTLED = 10  # steps before a gradient of zero means anything

MOVED = 0.1  # of a tensor's spread: steps times rate of Adam below this leave its start as it was
MAJORITY = 0.6  # of the matrices must stand at one recipe before others are called odd
LEAST = 4  # matrices
FAR = 3.0  # times the recipe


def units(c: Checkpoint) -> Iterator[Found]:
    """Rows and columns (units, channels) whose second moment or weight is exactly zero throughout."""
    n, names = counters(c), parameter_names(c)
    if n.optimizer is not None and n.optimizer < SETTLED:
        return
    dead = [told for t, s in measured(c, "exp_avg_sq") if (told := _lines(names.get(t.name, t.name), t, s))]
    bare = [told for t, s in of_weights(c, "weight") if not TABLES.search(t.name) and (told := _lines(t.name, t, s))]
    if dead:
        _, name, lines = max(dead)
        steps = f" in {n.optimizer} steps" if n.optimizer else ""
        what = "tokens that no batch held" if TABLES.search(name) else "dead units"
        if name not in names.values() and not TABLES.search(name):
            what = "dead units, or tokens that no batch held"
        title = f"{lines} of {name} have never had a gradient{steps} ({what}){others(dead, 'parts of ')}"
        yield finding("dead_units", "info", title, [x for _, x, _ in sorted(dead, reverse=True)])
    if bare:
        share, name, lines = max(bare)
        title = f"{lines} of {name} are exactly zero (cut away, or never made){others(bare, 'parts of ')}"
        meant = _pruned(c, len(bare)) or (lines.endswith("rows") and _may_be_table(c, name))
        severity = "warning" if share >= MASS and not meant else "info"
        yield finding("zero_units", severity, title, [x for _, x, _ in sorted(bare, reverse=True)])


def _may_be_table(c: Checkpoint, name: str) -> bool:
    """A matrix without a bias and without kin (layers of the same kind) may be an embedding, where rows of zeros fill up the vocabulary."""
    names = [t.name for t in c.contents.tensors if t.role == "weight"]
    bias = name.removesuffix("weight") + "bias"
    return bias not in names and sum(kin(n) == kin(name) for n in names) == 1


def _pruned(c: Checkpoint, lines: int) -> bool:
    """Zeros are cut on purpose in all matrices alike, or in most of them by lines."""
    matrices = [s for t, s in measured(c, "weight") if len(t.shape) >= 2 and not TABLES.search(t.name)]
    sparse = sum(s.zeros > 0.05 * s.count for s in matrices)
    masks = any(t.role == "buffer" and t.name.endswith("weight_mask") for t in c.contents.tensors)
    return masks or sparse > max(2, 0.3 * len(matrices)) or lines == len(matrices) == 1


def _lines(name: str, t: Tensor, s: Stats) -> tuple[float, str, str] | None:
    """(share, name, "12 of 512 rows"), None where too few are zero, or all."""
    if s.zeros == s.count or len(t.shape) < 2:
        return None
    sizes = ((s.zero_rows or 0, t.shape[0], "rows"), (s.zero_columns or 0, t.count // max(t.shape[0], 1), "columns"))
    found = [(k / n, name, f"{k} of {n} {what}") for k, n, what in sizes if k >= max(2, LINES * n)]
    return max(found) if found else None


def parameter_names(c: Checkpoint) -> dict[str, str]:
    """Names of the weights for tensors of the optimizer's state, ``optimizer.state.0.exp_avg`` to ``model.0.weight``.

    torch numbers parameters in the order of the model. Only where there is one group, and as many weights with the same
    shapes in the same order; empty otherwise.
    """
    held, places, weights = numbered(c)
    if [held.get(i) for i in range(len(held))] != [t.shape for t in weights]:
        return {}
    return {name: weights[i].name for name, i in places.items()}


_MOMENTS = ("exp_avg_sq", "exp_avg", "momentum_buffer")


def numbered(c: Checkpoint) -> tuple[dict[int, tuple[int, ...]], dict[str, int], list[Tensor]]:
    """(shapes of the moments by number, numbers by name, weights in their order); empty where parameters lie in several groups."""
    held: dict[int, tuple[int, ...]] = {}
    places: dict[str, int] = {}
    for t in c.contents.tensors:
        if t.name.endswith(_MOMENTS) and (m := re.search(r"(?:^|[.:])state\.(\d+)\.(exp_avg_sq|exp_avg|momentum_buffer)$", t.name)):
            held[int(m[1])], places[t.name] = t.shape, int(m[1])
    if any("param_groups." in k and re.search(r"param_groups\.[1-9]", k) for k in c.contents.values):
        return {}, {}, []
    return held, places, parameters(c)


# --- the start


def start(c: Checkpoint) -> Iterator[Found]:
    """The spread of fresh weights against the usual recipes; nothing where the training has moved them."""
    n = counters(c)
    depth = 1 + max((int(x) for t, _ in measured(c, "weight") for x in re.findall(r"\.(\d+)\.", t.name)), default=0)
    fresh = [(t, s) for t, s in measured(c, "weight") if len(t.shape) >= 2 and s.finite >= 256 and _fresh(s, n)]
    if len(fresh) < LEAST:
        return
    width = Counter(x for t, _ in fresh for x in t.shape[:2]).most_common(1)[0][0]
    fits = {t.name: [r for r, x in _recipes(t.shape, width, depth).items() if _close(s, x)] for t, s in fresh}
    made = [(t, s) for t, s in fresh if s.std > 0]  # zeros are a recipe of their own: adapters, last layers
    votes = Counter(r for t, _ in made for r in fits[t.name])
    if not votes or votes.most_common(1)[0][1] < MAJORITY * len(made):
        yield from _uniform(made, width, depth)
        return
    recipe, count = votes.most_common(1)[0]
    odd = []
    for t, s in made:
        if not fits[t.name] and not (TABLES.search(t.name) and _close(s, 1.0)):
            times = s.std / _recipes(t.shape, width, depth)[recipe]
            odd.append((abs(math.log(times)), times, t.name, s.std))
    if not odd:
        yield finding("init_recipe", "info", f"{count} of {len(made)} matrices stand at their start, a standard deviation of {recipe}")
        return
    worst, times, name, std = max(odd)
    title = f"{len(odd)} of {len(made)} matrices do not stand at the recipe of the others ({recipe})"
    title += f": {plain_name(name)} has a standard deviation of {std:.3g}, {times:.3g} times as much"
    severity = "warning" if worst > math.log(FAR) else "info"
    yield finding("init_std", severity, title, [x for _, _, x, _ in sorted(odd, reverse=True)])


def _fresh(s: Stats, n: Counters) -> bool:
    return n.age is not None and (n.age == 0 or (n.adam and n.lr is not None and n.lr * n.age <= MOVED * s.std))


def _close(s: Stats, std: float) -> bool:
    """Within two per cent, or four standard errors of the standard deviation of so many normal values."""
    return abs(s.std / std - 1) <= max(0.02, 4 / math.sqrt(2 * s.finite))


def _recipes(shape: tuple[int, ...], width: int, depth: int) -> dict[str, float]:
    """Standard deviations by name. GPT-2 (0.02, residual ones over sqrt(2 layers)); Nguyen and Salazar 2019 (small); Wang and
    Komatsuzaki 2021 (GPT-J's last layers); LeCun, Glorot, He; torch.nn.Linear (uniform, Kaiming with a = sqrt 5)."""
    inputs, outputs = math.prod(shape[1:]), shape[0] * math.prod(shape[2:])
    return {
        "0.02": 0.02,
        "0.02/sqrt(2 layers)": 0.02 / math.sqrt(2 * depth),
        "sqrt(2/(5 width))": math.sqrt(2 / (5 * width)),
        "2/(layers sqrt(width))": 2 / (depth * math.sqrt(width)),
        "1/sqrt(inputs)": 1 / math.sqrt(inputs),
        "sqrt(1/(3 inputs))": math.sqrt(1 / (3 * inputs)),
        "sqrt(2/inputs)": math.sqrt(2 / inputs),
        "sqrt(2/outputs)": math.sqrt(2 / outputs),
        "sqrt(2/(inputs+outputs))": math.sqrt(2 / (inputs + outputs)),
    }


def _uniform(made: list[Measured], width: int, depth: int) -> Iterator[Found]:
    """No recipe fits: said only where most matrices share one figure that is far from every recipe for their shapes."""
    for _, middle in made:
        same = [(s, sorted(_recipes(t.shape, width, depth).values())) for t, s in made if _close(s, middle.std)]
        high, low = all(s.std > FAR * r[-1] for s, r in same), all(s.std < r[0] / FAR for s, r in same)
        if len(same) >= MAJORITY * len(made) and (high or low):
            side = "larger" if high else "smaller"
            title = f"{len(same)} of {len(made)} matrices start with a standard deviation of {middle.std:.3g}, {side} than any usual recipe by {FAR:.0f} times and more"
            yield finding("init_std", "warning", title, [t.name for t, s in made if _close(s, middle.std)])
            return
