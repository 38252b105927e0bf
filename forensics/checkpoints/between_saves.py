"""What is odd between two checkpoints: frozen weights, moves that no rate explains, norms that grew, another model or tokenizer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from forensics.checkpoints import tokenizer_files
from forensics.checkpoints.age import counters, numbers
from forensics.checkpoints.describe import Checkpoint, plain_name
from forensics.checkpoints.looks import Found, finding, measured, parameters, weights_of, worst_first
from forensics.checkpoints.lost_parts import parts_gone, types_changed, untied, weights_gone
from forensics.checkpoints.matrix_copies import exchanged
from forensics.checkpoints.weight_moves import frozen, left_behind, sudden
from parsers.lazy_regex import lazy_re

GREW = 2.0  # norms that double between two checkpoints of one run
ADAM_MOST = 3.3  # |m|/sqrt(v) of Adam is at most (1-b1)/sqrt(1-b2) = 3.16 for the usual betas
SLACK = 1.5  # bound: other betas than the usual


def between(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> Iterator[Found]:
    """`changed` is what ``compare`` says of both."""
    for look in (_one_model, frozen, sudden, left_behind):
        yield from look(a, b, changed)
    yield from weights_gone(a, b)
    yield from exchanged(a, b, changed)
    for part in (parts_gone, untied, types_changed):
        yield from part(a, b)
    yield from _too_far(a, b, changed)
    yield from growth(a, b)
    yield from _tokenizer(a, b)


def _one_model(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> Iterator[Found]:
    mine, other = ({n: t.shape for n, t in weights_of(c).items()} for c in (a, b))
    if not mine or not other:
        return
    shared, most = mine.keys() & other.keys(), max(len(mine), len(other))
    reshaped = [n for n in shared if mine[n] != other[n]]
    odd = sorted(mine.keys() ^ other.keys())
    moved = [r for r in changed if r["role"] == "weight" and r["relative"] is not None]
    far = [r["name"] for r in moved if r["relative"] > 1.2]
    if len(shared) < 0.5 * most:
        yield finding("another_model", "warning", f"Only {len(shared)} of {most} weights have a namesake: not one model", odd)
    elif reshaped:
        yield finding("another_model", "warning", f"{len(reshaped)} weights have another shape, {reshaped[0]} first", reshaped)
    elif moved and len(far) > 0.6 * len(moved):
        title = f"{len(far)} of {len(moved)} weights differ by more than their own norm: two trainings, not two states of one"
        yield finding("another_model", "warning", title, far)
    elif odd:
        yield finding("other_names", "info", f"{len(odd)} weights are in one of the two only", odd)


_RATE = lazy_re(r"param_groups\.\d+\.(initial_)?lr$")


def _too_far(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> Iterator[Found]:
    """A weight that moved, as a whole, further than Adam moves all its values."""
    rate, updates, most = _reach(a, b)
    size = {t.name: t.count for t in a.contents.tensors}
    buffers = _not_stepped(a) | _not_stepped(b)
    far = []
    for r in changed:
        if r["role"] == "weight" and r["update_norm"] and most and size[r["name"]] >= 16 and plain_name(r["name"]) not in buffers:
            times = r["update_norm"] / (most * math.sqrt(size[r["name"]]))
            far += [(times, r["name"])] if times > SLACK else []
    if far:
        times, name = max(far)
        title = f"{name} moved {times:.3g} times as far as Adam can at a rate of {rate:.3g} in {updates} steps"
        yield finding("too_far", "warning", title, worst_first(far))


def beyond_adam(a: Checkpoint, b: Checkpoint) -> Iterator[Found]:
    """A weight whose largest value grew by more than Adam can move any value."""
    rate, updates, most = _reach(a, b)
    if not most:
        return
    before = {plain_name(t.name): s.absmax for t, s in measured(a, "weight")}
    buffers = _not_stepped(a) | _not_stepped(b)
    far = [
        ((s.absmax - old) / most, t.name, old, s.absmax)
        for t, s in measured(b, "weight")
        if (old := before.get(plain_name(t.name))) is not None and plain_name(t.name) not in buffers and s.absmax - old > SLACK * most
    ]
    if far:
        _, name, old, new = max(far)
        title = f"the largest value of {name} goes from {old:.3g} to {new:.3g} in {updates} updates, in which Adam at a rate of {rate:.3g} "
        yield finding("absurd", "critical", f"{title}moves none by more than {most:.3g}", worst_first([(times, n) for times, n, *_ in far]))


def _reach(a: Checkpoint, b: Checkpoint) -> tuple[float, int, float]:
    """(rate, updates between both, how far Adam moves a value in them at most: by about the rate in each). Zeros where that is not known."""
    x, y = counters(a), counters(b)
    rate = max((v for c in (a, b) for v in numbers(c, _RATE).values()), default=0.0)
    counted = (y.optimizer or 0) - (x.optimizer or 0) if x.optimizer and y.optimizer else (b.step or 0) - (a.step or 0)
    known = (x.adam or y.adam) and a.step is not None and b.step is not None and counted > 0
    return (rate, counted, ADAM_MOST * rate * counted) if known else (0.0, 0, 0.0)


def _not_stepped(c: Checkpoint) -> set[str]:
    """Weights that may be buffers, which no optimizer steps (spectral norm's vectors, codebooks): of their shape there are fewer moments than weights."""
    held = Counter(t.shape for t, _ in measured(c, "exp_avg") if t.count > 1)
    shapes = Counter(t.shape for t in parameters(c))
    if not any(shapes[s] <= n for s, n in held.items()):  # flattened moments, or none: nothing is known
        return set()
    return {n for n, t in weights_of(c).items() if shapes[t.shape] > held[t.shape]}


QK = lazy_re(r"(?i)(?<![\w.])(?>[\w.]*?(?:q_proj|k_proj|qkv|query|key|\bwq\b|\bwk\b|in_proj|c_attn))[\w.]*+(?<=weight)$")
EMBEDDING = lazy_re(r"(?i)emb|wte")
HEAD = lazy_re(r"(?i)lm_head|(^|\.)(head|output|classifier)\.(\w+\.)?weight$")


def growth(a: Checkpoint, b: Checkpoint) -> Iterator[Found]:
    """Norms of queries and keys, of the embedding and of the head."""
    before = {plain_name(t.name): s.norm for t, s in measured(a, "weight")}
    grown = []
    for t, s in measured(b, "weight"):
        old = before.get(plain_name(t.name), 0.0)
        if old > 0 and s.norm > GREW * old and any(rule.search(t.name) for rule in (QK, EMBEDDING, HEAD)):
            grown.append((s.norm / old, t.name))
    if grown:
        times, name = max(grown)
        title = f"The norm of {name} is {times:.1f} times what it was ({len(grown)} of the attention, embedding or head)"
        yield finding("norm_growth", "info", title, worst_first(grown))


def _tokenizer(a: Checkpoint, b: Checkpoint) -> Iterator[Found]:
    """Settings of the tokenizer and the chat template that are not the same in both folders."""
    differ = tokenizer_files.differences(tokenizer_files.home(a.path), tokenizer_files.home(b.path))
    if differ:
        yield finding("tokenizer_changed", "warning", f"The tokenizer is not the same in both: {'; '.join(differ[:5])}", differ)
