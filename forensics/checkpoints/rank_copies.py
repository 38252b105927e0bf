"""Copies in a checkpoint that should be equal and are not: what all ranks hold whole, in a file for each rank.

Tensor-parallel ranks share norms; data-parallel ones share everything. Which tensors are copies is told by their values:
parts of one matrix are unlike each other, copies that drifted apart are nearly the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from forensics.checkpoints.describe import Checkpoint, difference, plain_name
from forensics.checkpoints.looks import Found, Measured, finding, measured
from parsers import rank_names
from parsers.checkpoints.contents import Tensor
from parsers.checkpoints.value_stats import Stats
from parsers.lazy_regex import lazy_re

ALIKE = 0.5  # distance over what two unrelated tensors of that spread have
_NORM = lazy_re(r"(?i)(norm|(?<!\w)(?>\w*?ln)\w*+)\.(weight|bias)$")


def ranks(c: Checkpoint) -> Iterator[Found]:
    """Every copy against the one that most ranks hold, by all its statistics; where those differ, value by value."""
    names: list[str] = []
    odd: Counter[str] = Counter()
    for copies in _copies(c):
        kinds = Counter(s.fingerprint for _, s in copies)
        most, votes = kinds.most_common(1)[0]
        model, stats = next((t, s) for t, s in copies if s.fingerprint == most)
        for t, s in copies:
            if s.fingerprint == most:
                continue
            far = _distance(model, t, stats, s)
            if far is not None and (far < ALIKE or (len(t.shape) == 1 and _NORM.search(t.name))):
                names += [model.name] * (model.name not in names[-1:])
                odd[t.source] += votes > len(copies) / 2
    if names:
        source, times = odd.most_common(1)[0]
        alone = f"; {source} is alone with its values in {times} of them" if times else ""
        title = f"{len(names)} tensors that all ranks should share are not the same in all, {plain_name(names[0])} first{alone}"
        yield finding("ranks_differ", "warning", title, names)


def _copies(c: Checkpoint) -> list[list[Measured]]:
    """Weights of one name and shape in files that differ only in the number of the rank."""
    held: dict[tuple[str, str, tuple[int, ...]], list[Measured]] = {}
    for t, s in measured(c, "weight"):
        if (place := rank_names.shard_of(t.source)) is not None:
            held.setdefault((place, t.name.rpartition(":")[2], t.shape), []).append((t, s))
    return [x for x in held.values() if len(x) > 1]


def _distance(a: Tensor, b: Tensor, x: Stats, y: Stats) -> float | None:
    """Norm of the difference over what two unrelated tensors of those spreads would have; None where it cannot be had."""
    spread = math.sqrt(x.m2 + y.m2)
    update = difference(a, b, x)["update_norm"]
    if update is None or math.isnan(update):
        return None
    mean = abs(x.mean - y.mean) * math.sqrt(x.finite)
    rest = math.sqrt(max(update * update - mean * mean, 0.0))
    return rest / spread if spread else math.inf
