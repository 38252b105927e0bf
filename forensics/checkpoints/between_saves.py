"""What is odd between two checkpoints: frozen weights, moves that no rate explains, norms that grew, another model or tokenizer."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from forensics.checkpoints import tokenizer_files
from forensics.checkpoints.age import counters
from forensics.checkpoints.describe import Checkpoint, plain_name
from forensics.checkpoints.lost_parts import parts_gone, types_changed, untied
from forensics.checkpoints.matrix_copies import exchanged
from forensics.checkpoints.sick_values import Found, finding, measured
from forensics.checkpoints.weight_moves import moves

GREW = 2.0  # norms that double between two checkpoints of one run
ADAM_MOST = 3.3  # |m|/sqrt(v) of Adam is at most (1-b1)/sqrt(1-b2) = 3.16 for the usual betas


def between(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> list[Found]:
    return [
        *_one_model(a, b, changed),
        *moves(a, b, changed),
        *exchanged(a, b, changed),
        *parts_gone(a, b),
        *untied(a, b),
        *types_changed(a, b),
        *_too_far(a, b, changed),
        *growth(a, b),
        *_tokenizer(a, b),
    ]


def _one_model(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> list[Found]:
    mine, other = ({plain_name(t.name): t.shape for t in c.contents.tensors if t.role == "weight"} for c in (a, b))
    if not mine or not other:
        return []
    shared = mine.keys() & other.keys()
    reshaped = [n for n in shared if mine[n] != other[n]]
    odd = sorted(mine.keys() ^ other.keys())
    if len(shared) < 0.5 * max(len(mine), len(other)):
        return [
            finding(
                "another_model",
                "warning",
                f"Only {len(shared)} of {max(len(mine), len(other))} weights have a namesake: not one model",
                odd,
            )
        ]
    if reshaped:
        return [finding("another_model", "warning", f"{len(reshaped)} weights have another shape, {reshaped[0]} first", reshaped)]
    far = [r for r in changed if r["role"] == "weight" and (r["relative"] or 0) > 1.2]
    moved = [r for r in changed if r["role"] == "weight" and r["relative"] is not None]
    if moved and len(far) > 0.6 * len(moved):
        title = f"{len(far)} of {len(moved)} weights differ by more than their own norm: two trainings, not two states of one"
        return [finding("another_model", "warning", title, [r["name"] for r in far])]
    return [finding("other_names", "info", f"{len(odd)} weights are in one of the two only", odd)] if odd else []


def _too_far(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> list[Found]:
    """Adam moves a value by at most about the rate in a step: a move beyond that was made by something else."""
    n, m = counters(a), counters(b)
    if (not n.adam and not m.adam) or a.step is None or b.step is None or b.step <= a.step:
        return []
    rate = max(
        [
            v
            for c in (a, b)
            for k, v in c.contents.values.items()
            if re.search(r"param_groups\.\d+\.(initial_)?lr$", k) and type(v) is float
        ],
        default=0.0,
    )
    size = {t.name: t.count for t in a.contents.tensors}
    buffers = _not_stepped(a) | _not_stepped(b)
    far = []
    for r in changed:
        if r["role"] == "weight" and r["update_norm"] and rate and size[r["name"]] >= 16 and plain_name(r["name"]) not in buffers:
            most = ADAM_MOST * rate * (b.step - a.step) * math.sqrt(size[r["name"]])
            if r["update_norm"] > 1.5 * most:
                far.append((r["update_norm"] / most, r["name"]))
    if not far:
        return []
    times, name = max(far)
    title = f"{name} moved {times:.3g} times as far as Adam can at a rate of {rate:.3g} in {b.step - a.step} steps"
    return [finding("too_far", "warning", title, [x for _, x in sorted(far, reverse=True)])]


def _not_stepped(c: Checkpoint) -> set[str]:
    """Weights that may be buffers, which no optimizer steps (spectral norm's vectors, codebooks): of their shape there are fewer moments than weights."""
    held = Counter(t.shape for t, _ in measured(c, "exp_avg") if t.count > 1)
    weights = {
        tuple((id(p.file), p.offset) for p in t.pieces) or id(t): t for t in c.contents.tensors if t.role == "weight"
    }  # tied ones once
    shapes = Counter(t.shape for t in weights.values())
    if not any(shapes[s] <= n for s, n in held.items()):  # flattened moments, or none: nothing is known
        return set()
    return {plain_name(t.name) for t in c.contents.tensors if t.role == "weight" and shapes[t.shape] > held[t.shape]}


QK = re.compile(r"(?i)(?<![\w.])(?>[\w.]*?(?:q_proj|k_proj|qkv|query|key|\bwq\b|\bwk\b|in_proj|c_attn))[\w.]*+(?<=weight)$")
EMBEDDING = re.compile(r"(?i)emb|wte")
HEAD = re.compile(r"(?i)lm_head|(^|\.)(head|output|classifier)\.(\w+\.)?weight$")


def growth(a: Checkpoint, b: Checkpoint) -> list[Found]:
    """Norms of queries and keys, of the embedding and of the head."""
    before = {plain_name(t.name): s for t, s in measured(a, "weight")}
    grown = []
    for t, s in measured(b, "weight"):
        old = before.get(plain_name(t.name))
        if (
            old is not None
            and old.norm > 0
            and s.norm > GREW * old.norm
            and (QK.search(t.name) or EMBEDDING.search(t.name) or HEAD.search(t.name))
        ):
            grown.append((s.norm / old.norm, t.name))
    if not grown:
        return []
    times, name = max(grown)
    title = f"The norm of {name} is {times:.1f} times what it was ({len(grown)} of the attention, embedding or head)"
    return [finding("norm_growth", "info", title, [x for _, x in sorted(grown, reverse=True)])]


def _tokenizer(a: Checkpoint, b: Checkpoint) -> list[Found]:
    """Settings of the tokenizer and the chat template that are not the same in both folders."""
    differ = tokenizer_files.differences(tokenizer_files.home(a.path), tokenizer_files.home(b.path))
    if not differ:
        return []
    title = f"The tokenizer is not the same in both: {'; '.join(differ[:5])}"
    return [finding("tokenizer_changed", "warning", title, differ)]
