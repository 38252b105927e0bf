"""Two configs side by side, the settings that differ ordered by how likely they are to matter.

Suspicion is a plain sum from 0 to 100: what kind of setting it is (schedule and optimizer before precision, data, model, the
unknown, seeds, versions, names), how far apart the values are, and whether both runs name it at all. Where the two runs
computed equal values at first, what acts from the first step on (seed, init, model, data) cannot be what parted them.
"""

from __future__ import annotations

import math
import re
from typing import Any

from forensics.run.seed_group import FREE
from forensics.run.settings import as_number, last_values, plain
from parsers.tables import Run

KINDS: tuple[tuple[str, float, str, bool], ...] = (  # pattern, points, kind, acts on the very first step
    (r"version|torch$|cuda|cudnn|driver|nccl|python|platform|^os$|gpu(_?(name|type|model))?$|cpu|commit|(^|_)git|docker|transformers$|accelerate$|deepspeed$", 25, "environment", False),
    (r"seed", 40, "seed", True),
    (r"learning_?rate|(^|_)lr(_|$|\d)|warm_?up|sched|decay|(^|_)(beta|eps)|momentum|optim|clip|max_(grad_)?norm|max_steps|total_steps|train_iters|epochs", 85, "schedule and optimizer", False),
    (r"batch|accum|micro_?bs|bsz|world_size|num_gpus|devices|nnodes|parallel", 80, "batch and parallelism", True),
    (r"precision|dtype|fp16|bf16|fp8|tf32|(^|_)amp(_|$)|loss_scale|compile|flash|deterministic", 75, "precision", True),
    (r"token|vocab|seq_?len|max_len|block_size|context|template", 72, "tokens", True),
    (r"data|corpus|shuffle|sampler|shard|mix|split|fold|augment|collat|mask|pack", 70, "data", True),
    (r"eval|valid|(^|_)val(_|$)|(^|_)test", 55, "evaluation", False),
    (r"layer|hidden|(^|_)(n_?)?heads?(_|$)|embd|embed|model|dropout|norm|init|width|depth|activation|expert|(^|_)rope|(^|_)tied?(_|$)", 65, "model", True),
)  # fmt: skip
UNKNOWN, NAMES, ONE_SIDED, EXCUSED = 45.0, 4.0, 20.0, 45.0


def differences(a: Run, b: Run, *, equal_at_first: bool = False) -> list[dict[str, Any]]:
    """``{"key", "a", "b", "kind", "suspicion", "why"}`` of every setting that differs, the most suspect first."""
    one, two = last_values(a), last_values(b)
    found = []
    for key in sorted(one.keys() | two.keys()):
        x, y = one.get(key), two.get(key)
        if x == y or ((number := as_number(plain(x))) is not None and number == as_number(plain(y))):
            continue
        kind, points, early = kind_of(key)
        why = [kind]
        factor = _factor(x, y)
        if factor:
            points += min(15.0, 6 * abs(math.log(factor)))
            why.append(f"{max(factor, 1 / factor):.3g} times {'higher' if factor > 1 else 'lower'} in B")
        if x is None or y is None:
            points -= ONE_SIDED
            why.append(f"only {'B' if x is None else 'A'} names it")
        if equal_at_first and early:
            points -= EXCUSED
            why.append("the runs computed equal values at first, so this did not part them")
        found.append(
            {
                "key": key,
                "a": _shown(x),
                "b": _shown(y),
                "kind": kind,
                "suspicion": round(min(max(points, 0.0), 100.0), 1),
                "why": "; ".join(why),
            }
        )
    return sorted(found, key=lambda d: (-d["suspicion"], d["key"]))


def kind_of(key: str) -> tuple[str, float, bool]:
    """(kind, points, acts on the first step) of a setting, by the last part of its key."""
    last = re.split(r"[./]", key)[-1].lower().replace("-", "_").lstrip("_")
    for pattern, points, kind, early in KINDS:
        if re.search(pattern, last):
            if FREE.search(key) and kind not in ("seed", "environment") and not re.search(r"epochs|shards", last):
                break
            return kind, points, early
    return ("name or place", NAMES, False) if FREE.search(key) else ("other", UNKNOWN, False)


def _factor(x: str | None, y: str | None) -> float | None:
    """y over x, where both are positive numbers."""
    u, v = as_number(plain(x)), as_number(plain(y))
    return v / u if u and v and u > 0 and v > 0 and math.isfinite(v / u) else None


def _shown(text: str | None) -> Any:
    value = plain(text)
    return value if (value is None and text is None) or isinstance(value, (int, float)) else str(value)[:200]
