"""DeepSpeed's ZeRO: the flat shards of all ranks put together to the parameters they belong to.

Stages 1 and 2 cut one long vector for each group of parameters; stage 3 cuts every parameter. ``param_shapes`` in the
model's file says which parameter lies where. Joined are weights in float32 and both moments of Adam, as pieces in the
mapped files; nothing is copied. Where a rank is missing, or lengths do not go together, shards stay as they are.
Source: deepspeed/utils/zero_to_fp32.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from parsers.checkpoints.contents import SIZES, Contents, Piece, Tensor
from parsers.lazy_regex import lazy_re

_OPTIMIZER = lazy_re(r"(?:.*/)?(?:bf16_)?zero_pp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt")
_MODEL = lazy_re(r"(?:.*/)?(?:zero_pp_rank_0_)?mp_rank_(\d+)_model_states\.pt")
_SHAPE = lazy_re(r"param_shapes\.(\d+)\.(.+)")
_FLAT = [
    ("fp32", "master", lazy_re(r"optimizer_state_dict\.(?:single_partition_of_fp32_groups|fp32_flat_groups)\.(\d+)")),
    ("exp_avg", "exp_avg", lazy_re(r"optimizer_state_dict\.\w+\.state\.(\d+)\.exp_avg")),
    ("exp_avg_sq", "exp_avg_sq", lazy_re(r"optimizer_state_dict\.\w+\.state\.(\d+)\.exp_avg_sq")),
]
ALIGNED = 2  # times the ranks: values that a group may be filled up with

Part = tuple[str, Contents]
Shapes = list[list[tuple[str, tuple[int, ...]]]]


def join(parts: Sequence[Part]) -> None:
    """Replaces shards by parameters where that is plain; the first rank's file holds them then."""
    models = {int(m[1]): c for name, c in parts if (m := _MODEL.fullmatch(name))}
    ranks: dict[int, dict[int, Contents]] = {}
    for name, c in parts:
        if m := _OPTIMIZER.fullmatch(name):
            ranks.setdefault(int(m[2]), {})[int(m[1])] = c
    for mp, files in ranks.items():
        shapes = _shapes(models[mp]) if mp in models else []
        shards = [files[i] for i in sorted(files)]
        if not shapes or sorted(files) != list(range(_count(shards[0]))):
            continue
        stage = shards[0].values.get("optimizer_state_dict.zero_stage")
        for suffix, role, pattern in _FLAT:
            flat = [_flat(c, pattern) for c in shards]
            joined = (_whole if stage == 3 else _groups)(shapes, flat)
            if not joined:
                continue
            gone = {id(t) for tensors in flat for t in tensors}
            for c in shards:
                c.tensors = [t for t in c.tensors if id(t) not in gone]
            first = flat[0][0]
            shards[0].tensors += [
                Tensor(f"{name}.{suffix}", first.dtype, shape, first.source, pieces[0].offset if pieces else 0, pieces, role=role)
                for name, shape, pieces in joined
            ]  # fmt: skip


Joined = list[tuple[str, tuple[int, ...], tuple[Piece, ...]]]


def _shapes(model: Contents) -> Shapes:
    """Name and shape of the parameters by group, in their order."""
    groups: dict[int, list[tuple[str, tuple[int, ...]]]] = {}
    for key, value in model.values.items():
        if (m := _SHAPE.fullmatch(key)) and isinstance(value, str) and value.startswith("["):
            shape = tuple(int(n) for n in re.findall(r"\d+", value))
            groups.setdefault(int(m[1]), []).append((m[2], shape))
    return [groups[i] for i in sorted(groups)]


def _count(c: Contents) -> int:
    """Ranks that the shards were made for; -1 where the file does not say."""
    values = [v for k, v in c.values.items() if re.fullmatch(r"optimizer_state_dict\.partition_count(\.\d+)?", k)]
    return max((v for v in values if type(v) is int), default=-1)


def _flat(c: Contents, pattern: re.Pattern[str]) -> list[Tensor]:
    """One vector for each group; empty where they are not all there as they lie."""
    found = {int(m[1]): t for t in c.tensors if (m := pattern.fullmatch(t.name))}
    tensors = [found[i] for i in sorted(found)]
    plain = all(len(t.shape) == 1 and not t.why and not t.layout and not t.swapped and t.pieces for t in tensors)
    return tensors if plain and sorted(found) == list(range(len(found))) else []


def _same(flat: list[list[Tensor]], groups: int | None = None) -> bool:
    sizes = {len(x) for x in flat}
    return len(sizes) == 1 and 0 not in sizes and sizes <= {groups or len(flat[0])} and len({t.dtype for x in flat for t in x}) == 1


def _groups(shapes: Shapes, flat: list[list[Tensor]]) -> Joined:
    """Stages 1 and 2: a group is the vectors of all ranks, one after another."""
    if not _same(flat, len(shapes)):
        return []
    found: Joined = []
    for i, group in enumerate(shapes):
        vector = [p for tensors in flat for p in tensors[i].pieces]
        need, have = sum(math.prod(shape) for _, shape in group), sum(p.count for p in vector)
        if not need <= have < need + ALIGNED * len(flat):
            return []
        at = 0
        for name, shape in group:
            found.append((name, shape, _cut(vector, at, math.prod(shape), flat[0][0].dtype)))
            at += math.prod(shape)
    return found


def _whole(shapes: Shapes, flat: list[list[Tensor]]) -> Joined:
    """Stage 3: every rank holds one part of each parameter, the last one filled up."""
    if not _same(flat):
        return []
    vectors = [[p for t in tensors for p in t.pieces] for tensors in flat]
    found: Joined = []
    at = 0
    for name, shape in (x for group in shapes for x in group):
        n, part = math.prod(shape), -(-math.prod(shape) // len(flat))
        sizes = [max(min(part, n - i * part), 0) for i in range(len(flat))]
        cuts = [_cut(v, at, k, flat[0][0].dtype) for v, k in zip(vectors, sizes, strict=True)]
        found.append((name, shape, tuple(p for c in cuts for p in c)))
        at += part
    return found if all(sum(p.count for p in v) == at for v in vectors) else []


def _cut(vector: list[Piece], start: int, count: int, dtype: str) -> tuple[Piece, ...]:
    """`count` values from place `start` of pieces that follow each other."""
    found = []
    for p in vector:
        if count and start < p.count:
            n = min(count, p.count - start)
            found.append(replace(p, offset=p.offset + start * SIZES[dtype], count=n))
            count, start = count - n, 0
        else:
            start -= min(start, p.count)
    return tuple(found)
