"""What every look at a checkpoint shares: how a finding is said, tensors with their statistics, kinship of layers, matrices of two saves."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from typing import Any

from forensics.checkpoints.describe import Checkpoint, place, plain_name
from parsers.checkpoints.contents import Tensor
from parsers.checkpoints.value_stats import Stats
from parsers.lazy_regex import lazy_re

SHOWN = 50  # names of tensors in one finding
WEIGHTS = ("weight", "master", "ema")
MOMENTS = ("exp_avg", "exp_avg_sq")
TABLES = lazy_re(r"(?i)emb|wte|wpe|lm_head")  # rows are tokens, which a batch need not hold

Found = dict[str, Any]
Measured = tuple[Tensor, Stats]


def finding(kind: str, severity: str, title: str, tensors: Iterable[str] = ()) -> Found:
    return {"id": kind, "title": title, "severity": severity, "tensors": list(tensors)[:SHOWN]}


def such(found: Sized) -> str:
    return f"; {len(found)} such" if len(found) > 1 else ""


def others(found: Sized, what: str = "") -> str:
    return f", and {what}{len(found) - 1} more" if len(found) > 1 else ""


def worst_first(found: Sequence[tuple[float, str]]) -> list[str]:
    return [name for _, name in sorted(found, reverse=True)]


def measured(c: Checkpoint, *roles: str) -> list[Measured]:
    """Tensors of these roles with their statistics, in the order of the file."""
    key = len(c.stats), roles  # a dozen looks ask, of files with 50,000 tensors
    if key not in c.by_roles:
        wanted = frozenset(roles)
        c.by_roles[key] = [(t, c.stats[t.name]) for t in c.contents.tensors if t.role in wanted and t.name in c.stats]
    return c.by_roles[key]


_STATE = lazy_re(r"(^|[.:/])(state\.[^:]+|(optimi[sz]er|optim)\w*[./][^:]*)$")


def is_state(name: str) -> bool:
    """Whether a tensor belongs to what an optimizer remembers, whatever its name: momentum_buffer, sum, prev, GG.0."""
    return _STATE.search(name) is not None


_OPTIMIZERS = lazy_re(r"(?i)(^|[.:/])optimi[sz]er\w*/")


def of_weights(c: Checkpoint, *roles: str) -> list[Measured]:
    """The same without what an optimizer keeps under a name that tells no role: Keras numbers its moments, ``optimizer/vars/10``."""
    return [(t, s) for t, s in measured(c, *roles) if not _OPTIMIZERS.search(t.name)]


def moments_of(c: Checkpoint) -> list[Measured]:
    """Whatever an optimizer remembers of each parameter, by its role or by its name alone."""
    named = [(t, s) for t, s in measured(c, *WEIGHTS, "buffer", "other") if _OPTIMIZERS.search(t.name) or is_state(t.name)]
    return [(t, s) for t, s in (*measured(c, *MOMENTS), *named) if t.count > 1]


def kin(name: str) -> str:
    """The name without its numbers: what all layers of one kind share."""
    return re.sub(r"\d+", "#", name)


def is_matrix(t: Tensor) -> bool:
    return t.count >= 16 and t.count > max(t.shape)  # two axes longer than one


def rms(s: Stats) -> float:
    return s.norm / math.sqrt(s.finite) if s.finite else 0.0


def gain(t: Tensor, s: Stats) -> float:
    """How much a layer makes of its input: 1 at most recipes."""
    return rms(s) * math.sqrt(max(t.count // t.shape[0], 1))


def cosine(x: Stats, y: Stats, update: float) -> float:
    """Between two tensors, by the norm of their difference; NaN where one of them is zero."""
    return (x.squares + y.squares - update * update) / (2 * x.norm * y.norm) if x.norm and y.norm else math.nan


def weights_of(c: Checkpoint) -> dict[str, Tensor]:
    """By the names that two checkpoints share."""
    return {plain_name(t.name): t for t in c.contents.tensors if t.role == "weight"}


def parameters(c: Checkpoint) -> list[Tensor]:
    """The weights in their order; tied ones, which share their bytes, are one."""
    once: dict[Any, Tensor] = {}
    for t in c.contents.tensors:
        if t.role == "weight":
            once.setdefault(place(t), t)
    return list(once.values())


@dataclass(frozen=True)
class Moved:
    """A matrix of two saves. `update` is the norm of the difference, `relative` that over the norm before."""

    name: str
    update: float
    relative: float
    before: Measured
    after: Measured

    @property
    def grown(self) -> float:
        return rms(self.after[1]) / max(rms(self.before[1]), 1e-300)

    @property
    def cosine(self) -> float:
        return cosine(self.before[1], self.after[1], self.update)


def moved_matrices(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> list[Moved]:
    """The matrices of both whose difference is known, from the rows of ``compare``."""
    old = {t.name: (t, s) for t, s in measured(a, "weight")}
    new = {plain_name(t.name): (t, s) for t, s in measured(b, "weight")}
    found = []
    for r in changed:
        x, y, far = old.get(r["name"]), new.get(plain_name(r["name"])), r["relative"]
        if x is not None and y is not None and is_matrix(x[0]) and far is not None and math.isfinite(far):
            found.append(Moved(r["name"], r["update_norm"], far, x, y))
    return found
