"""What is sick in one checkpoint, and what is odd between two: lists of ``{"id", "title", "severity", "tensors"}``.

Every function looks at names, plain values and statistics that are already there; only ``spikes`` reads values again (the
two moments of Adam together). Thresholds stand at the top, with where they come from.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forensics.checkpoint import Checkpoint, plain_name
from parsers.checkpoints import allowed
from parsers.checkpoints.contents import Tensor, chunks
from parsers.checkpoints.pickles import Unreadable
from parsers.checkpoints.statistics import Stats, values

ABSURD = 1e6  # no trained weight is this large; bfloat16's bit flips give 1e38
ALONE = 0.9  # one value with this share of a tensor's squares
ALONE_SIZE = 50.0  # times what the others are worth (root mean square), in tensors of at least ALONE_COUNT
ALONE_COUNT = 256
SPAM = 5000.0  # g^2 > 5000 v is a spike of the gradient (Huang et al., SPAM, 2025)
SPIKED = 0.01  # of a tensor's elements; single ones are nothing to speak of
GREW = 2.0  # q/k norms that double between two checkpoints of one run
ADAM_MOST = 3.3  # |m|/sqrt(v) of Adam is at most (1-b1)/sqrt(1-b2) = 3.16 for the usual betas
SHOWN = 50

WEIGHTS = ("weight", "master", "ema")
MOMENTS = ("exp_avg", "exp_avg_sq")

Found = dict[str, Any]


def finding(kind: str, severity: str, title: str, tensors: Iterable[str] = ()) -> Found:
    return {"id": kind, "title": title, "severity": severity, "tensors": list(tensors)[:SHOWN]}


def findings(c: Checkpoint) -> list[Found]:
    """Everything, the gravest first."""
    found = [*foreign_code(c), *incomplete(c), *nonfinite(c), *absurd(c), *counters_disagree(c), *optimizer(c), *spikes(c), *ranks(c)]
    return sorted(found, key=lambda f: ("critical", "warning", "info").index(f["severity"]))


def foreign_code(c: Checkpoint) -> list[Found]:
    names = [r["what"] for r in c.contents.refused]
    bad = [n for n in names if allowed.dangerous(n) or " " in n]
    found = []
    if bad:
        title = f"The file asks its reader to run or reach what no checkpoint needs: {', '.join(bad[:4])}; nothing of it was done"
        found.append(finding("foreign_code", "critical", title))
    others = [n for n in names if n not in bad]
    if others:
        title = f"{len(others)} names of classes outside the usual libraries were not followed: {', '.join(others[:4])}"
        found.append(finding("unknown_names", "info", title))
    return found


def incomplete(c: Checkpoint) -> list[Found]:
    lost = [t for t in c.contents.tensors if "missing" in t.why or "beyond" in t.why]
    found = []
    if c.contents.complete is False:
        why = c.contents.gaps[0].what if c.contents.gaps else "a part is missing"
        found.append(finding("incomplete", "critical" if lost else "warning", f"The save is not whole: {why}", [t.name for t in lost]))
    if not c.contents.tensors and c.kind == "other" and c.contents.format in ("torch", "safetensors") and _claims_weights(c):
        found.append(finding("no_tensors", "warning", "A file of weights that holds no tensor"))
    return found


def _claims_weights(c: Checkpoint) -> bool:
    return any(re.search(r"(?i)model|adapter|weights", f.name) and f.suffix != ".json" for f in c.contents.files)


def nonfinite(c: Checkpoint) -> list[Found]:
    bad = [(t, s) for t, s in measured(c, *WEIGHTS, *MOMENTS, "buffer") if s.nonfinite and not _mask(t)]
    if not bad:
        return []
    n, first = sum(s.nonfinite for _, s in bad), bad[0][0]
    title = f"{n} values that are not finite in {len(bad)} of {len(c.contents.tensors)} tensors, {first.name} first"
    return [finding("nonfinite", "critical", title, [t.name for t, _ in bad])]


def _mask(t: Tensor) -> bool:
    """Causal masks are stored as buffers full of minus infinity, and mean it."""
    return t.role == "buffer" and bool(re.search(r"(?i)mask|bias|alibi|tril", t.name))


def absurd(c: Checkpoint) -> list[Found]:
    found = []
    for t, s in measured(c, *WEIGHTS, "exp_avg"):
        if s.absmax > ABSURD:
            title = f"{t.name} holds a value of {s.absmax:.3g}, which no training reaches; the others are about {_rest(t, s):.2g}"
            found.append(finding("absurd_value", "critical", title, [t.name]))
        elif t.role != "exp_avg" and stands_alone(s):
            title = f"One value of {t.name} is {s.absmax:.3g} where the others are about {_rest(t, s):.2g}"
            found.append(finding("lone_value", "warning", title, [t.name]))
    return found


def stands_alone(s: Stats) -> bool:
    """One value holds nearly all of the tensor's squares, far above what the rest is worth."""
    if s.count < ALONE_COUNT or s.absmax**2 < ALONE * s.squares:
        return False
    rest = max(s.squares - s.absmax**2, 0.0)
    return s.absmax**2 > ALONE_SIZE**2 * rest / (s.finite - 1)


def _rest(t: Tensor, s: Stats) -> float:
    """Root mean square of the values less than half the largest: read again, because the sums have lost them."""
    squares, n = 0.0, 0
    for block in chunks(t):
        x = np.abs(values(block, t.dtype).astype(np.float64))
        x = x[x < s.absmax / 2]
        squares, n = squares + float(np.dot(x, x)), n + len(x)
    return math.sqrt(squares / n) if n else 0.0


# --- counts of steps


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


def counters(c: Checkpoint) -> Counters:
    steps, ages, params, states = [], [], set(), set()
    lr, adam = None, False
    for name, value in c.contents.values.items():
        source, _, plain = name.rpartition(":")
        last = plain.rpartition(".")[2]
        in_optimizer = "optim" in plain or "optim" in source or plain.startswith("state.")
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
        if t.role in MOMENTS:
            states.add(t.name.rpartition(".")[0])
    return Counters(c.step, max(steps, default=None), max(ages, default=None), len(states), len(params), adam, lr)


def counters_disagree(c: Checkpoint) -> list[Found]:
    """For one checkpoint alone; what several of a run say together is forensics.detectors.checkpoint_state."""
    n, found = counters(c), []
    if n.optimizer is not None and n.label and n.optimizer < 0.8 * n.label and n.label > 20:
        whole = n.optimizer > 0 and n.label % n.optimizer == 0
        title = f"The optimizer has counted {n.optimizer} steps in the checkpoint of step {n.label}"
        title += f": one for {n.label // n.optimizer} (accumulation), or it began anew on the way" if whole else ": it began anew on the way"
        found.append(finding("optimizer_behind", "info" if whole else "warning", title))
    reference = n.optimizer or n.label
    if n.scheduler and reference and n.scheduler != n.label and n.scheduler >= 2 * reference and n.scheduler % reference == 0 and n.scheduler // reference <= 64:
        k = n.scheduler // reference
        title = f"The schedule has been stepped {k} times for each step of the optimizer ({n.scheduler} against {reference})"
        found.append(finding("schedule_ahead", "warning", f"{title}: for each micro-batch, or each process"))
    elif n.scheduler is not None and n.optimizer and 20 < n.scheduler < 0.8 * n.optimizer and n.optimizer % max(n.scheduler, 1):
        title = f"The schedule stands at {n.scheduler} where the optimizer has counted {n.optimizer} steps: it began anew, or counts otherwise"
        found.append(finding("schedule_behind", "warning", title))
    return found


def optimizer(c: Checkpoint) -> list[Found]:
    """Missing, empty or fresh state, and what a resume would lack besides."""
    n, found = counters(c), []
    seconds = measured(c, "exp_avg_sq")
    if n.adam and not n.states and n.params and (n.label or 0) > 1:
        found.append(finding("optimizer_empty", "warning", f"The optimizer's state is empty at step {n.label}: a resume begins with fresh moments"))
    elif n.states and n.params > n.states:
        title = f"{n.params - n.states} of {n.params} parameters of the optimizer have no state: they never had a gradient"
        found.append(finding("optimizer_partial", "warning" if n.states < 0.8 * n.params else "info", title))
    if seconds and all(s.zeros == s.count for _, s in seconds):
        found.append(finding("optimizer_fresh", "warning", "All second moments are zero: the optimizer has not taken a step since it was made"))
    else:
        still = [t.name for t, s in seconds if s.count and s.zeros == s.count]
        if still:
            found.append(finding("no_gradient", "info", f"{len(still)} tensors have second moments of zero: no gradient reached them", still))
        dead = [t.name for t, s in seconds if len(t.shape) > 1 and 0.2 < s.zeros / max(s.count, 1) < 1]
        if dead:
            found.append(finding("dead_units", "info", f"{len(dead)} tensors in which every fifth value has never had a gradient (dead units, unseen tokens)", dead))
    if c.kind == "full" and c.path.is_dir():
        names = " ".join(f.name for f in c.contents.files).lower() + " ".join(c.contents.values) + " ".join(t.name for t in c.contents.tensors)
        if not re.search(r"rng|random_state", names):
            title = "No state of random generators or samplers: a resume will draw other data, or the first ones again"
            found.append(finding("no_rng_state", "info", title))
    return found


def spikes(c: Checkpoint) -> list[Found]:
    """Elements whose last gradient broke the rule g^2 > 5000 v, as far as the moments still show it.

    After such a step from quiet moments m = (1-b1) g and v = b2 v0 + (1-b2) g^2 with g^2 > 5000 v0, so that
    m^2/v > (1-b1)^2 5000 / (b2 + (1-b2) 5000): 8.3 for the usual betas. Both are corrected for their bias first.
    """
    n = counters(c)
    if not n.adam or not n.optimizer or n.optimizer < 20:
        return []
    b1, b2 = (next((v for k, v in c.contents.values.items() if k.endswith(f"betas.{i}")), d) for i, d in ((0, 0.9), (1, 0.999)))
    if not (0 < b1 < 1 and 0 < b2 < 1):
        return []
    limit = (1 - b1) ** 2 * SPAM / (b2 + (1 - b2) * SPAM) * (1 - b1**n.optimizer) ** 2 / (1 - b2**n.optimizer)
    firsts = {t.name.rpartition(".")[0]: t for t, _ in measured(c, "exp_avg")}
    seconds = {t.name.rpartition(".")[0]: t for t, _ in measured(c, "exp_avg_sq")}
    found = []
    for name in firsts.keys() & seconds.keys():
        m, v = firsts[name], seconds[name]
        if m.shape == v.shape and m.layout == v.layout and limit > 1:
            count = _over(m, v, limit)
            if count >= SPIKED * m.count and count > 1:
                found.append((count / m.count, count, m.name))
    if not found:
        return []
    share, _, name = max(found)
    title = f"{share:.1%} of {name} had a gradient with g^2 > 5000 v in the last steps" + (f", and parts of {len(found) - 1} more" if found[1:] else "")
    return [finding("gradient_spike", "info", title, [x for _, _, x in sorted(found, reverse=True)])]


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


def ranks(c: Checkpoint) -> list[Found]:
    """Norms (layer norms) that every rank of a tensor-parallel save holds whole: they must be the same in all."""
    held: dict[str, list[Tensor]] = {}
    for t, _ in measured(c, "weight"):
        if len(t.shape) == 1 and re.search(r"(?i)(layer_?norm|rms_?norm|norm|ln_?\w*)\.(weight|bias)$", t.name) and "rank" in t.source:
            place = re.sub(r"(?i)(mp_|model_|tp_?|tensor_)?rank[-_]?\d+", "rank", t.source, count=1)
            held.setdefault(f"{place}:{t.name.rpartition(':')[2]}", []).append(t)
    differ = []
    for copies in held.values():
        first = copies[0]
        if any(t.shape == first.shape and c.stats[t.name] != c.stats[first.name] for t in copies[1:]):
            differ.append(first.name)
    if not differ:
        return []
    return [finding("ranks_differ", "warning", f"{len(differ)} norms that all ranks should share differ between ranks, {differ[0]} first", differ)]


def measured(c: Checkpoint, *roles: str) -> list[tuple[Tensor, Stats]]:
    return [(t, c.stats[t.name]) for t in c.contents.tensors if t.role in roles and t.name in c.stats]


# --- two checkpoints


def between(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> list[Found]:
    return [*_one_model(a, b, changed), *_frozen(changed), *_too_far(a, b, changed), *_growth(a, b), *_tokenizer(a, b)]


def _one_model(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> list[Found]:
    mine, other = ({plain_name(t.name): t.shape for t in c.contents.tensors if t.role == "weight"} for c in (a, b))
    if not mine or not other:
        return []
    shared = mine.keys() & other.keys()
    reshaped = [n for n in shared if mine[n] != other[n]]
    odd = sorted(mine.keys() ^ other.keys())
    if len(shared) < 0.5 * max(len(mine), len(other)):
        return [finding("another_model", "warning", f"Only {len(shared)} of {max(len(mine), len(other))} weights have a namesake: not one model", odd)]
    if reshaped:
        return [finding("another_model", "warning", f"{len(reshaped)} weights have another shape, {reshaped[0]} first", reshaped)]
    far = [r for r in changed if r["role"] == "weight" and (r["relative"] or 0) > 1.2]
    moved = [r for r in changed if r["role"] == "weight" and r["relative"] is not None]
    if moved and len(far) > 0.6 * len(moved):
        title = f"{len(far)} of {len(moved)} weights differ by more than their own norm: two trainings, not two states of one"
        return [finding("another_model", "warning", title, [r["name"] for r in far])]
    return [finding("other_names", "info", f"{len(odd)} weights are in one of the two only", odd)] if odd else []


def _frozen(changed: Sequence[Found]) -> list[Found]:
    weights = [r for r in changed if r["role"] == "weight" and r["equal"] is not None]
    still = [r["name"] for r in weights if r["equal"]]
    if weights and len(still) == len(weights):
        return [finding("same_weights", "info", "All weights are bit for bit the same")]
    if not still:
        return []
    return [finding("frozen", "warning", f"{len(still)} of {len(weights)} weights are bit for bit the same while others moved", still)]


def _too_far(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> list[Found]:
    """Adam moves a value by at most about the rate in a step: a move beyond that was made by something else."""
    n, m = counters(a), counters(b)
    if (not n.adam and not m.adam) or a.step is None or b.step is None or b.step <= a.step:
        return []
    rate = max([v for c in (a, b) for k, v in c.contents.values.items() if re.search(r"param_groups\.\d+\.(initial_)?lr$", k) and type(v) is float], default=0.0)
    size = {t.name: t.count for t in a.contents.tensors}
    far = []
    for r in changed:
        if r["role"] == "weight" and r["update_norm"] and rate and size[r["name"]] >= 16:
            most = ADAM_MOST * rate * (b.step - a.step) * math.sqrt(size[r["name"]])
            if r["update_norm"] > 1.5 * most:
                far.append((r["update_norm"] / most, r["name"]))
    if not far:
        return []
    times, name = max(far)
    title = f"{name} moved {times:.3g} times as far as Adam can at a rate of {rate:.3g} in {b.step - a.step} steps"
    return [finding("too_far", "warning", title, [x for _, x in sorted(far, reverse=True)])]


_QK = re.compile(r"(?i)(q_proj|k_proj|qkv|query|key|\bwq\b|\bwk\b|in_proj|query_key_value|c_attn)[\w.]*weight$")

_ENDS = re.compile(r"(?i)emb|wte|lm_head|(^|\.)(head|output|classifier)\.")


def _growth(a: Checkpoint, b: Checkpoint) -> list[Found]:
    """Norms of queries and keys, of the embedding and of the head."""
    before = {plain_name(t.name): s for t, s in measured(a, "weight")}
    grown = []
    for t, s in measured(b, "weight"):
        old = before.get(plain_name(t.name))
        if old is not None and old.norm > 0 and s.norm > GREW * old.norm and (_QK.search(t.name) or _ENDS.search(t.name)):
            grown.append((s.norm / old.norm, t.name))
    if not grown:
        return []
    times, name = max(grown)
    title = f"The norm of {name} is {times:.1f} times what it was ({len(grown)} of the attention, embedding or head)"
    return [finding("norm_growth", "info", title, [x for _, x in sorted(grown, reverse=True)])]


_TOKENIZER = ("tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja", "generation_config.json", "added_tokens.json")
_TELLING = re.compile(r"(?i)token|template|padding_side|truncation_side|class|lower|prefix|clean_up|max_length|legacy|normali")


def _tokenizer(a: Checkpoint, b: Checkpoint) -> list[Found]:
    """Settings of the tokenizer and the chat template that are not the same in both folders."""
    import json

    differ = []
    for name in _TOKENIZER:
        one, two = ((c.path if c.path.is_dir() else c.path.parent) / name for c in (a, b))
        if one == two or not (one.is_file() and two.is_file()) or max(one.stat().st_size, two.stat().st_size) > 16 << 20:
            continue
        x, y = one.read_bytes(), two.read_bytes()
        if x == y:
            continue
        try:
            old, new = json.loads(x), json.loads(y)
        except (ValueError, RecursionError):
            differ.append(name)
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            keys = sorted(k for k in old.keys() | new.keys() if old.get(k) != new.get(k) and _TELLING.search(k))
            differ += [f"{k} ({_short(old.get(k))} -> {_short(new.get(k))})" for k in keys]
    if not differ:
        return []
    return [finding("tokenizer_changed", "warning", f"The tokenizer is not the same in both: {'; '.join(differ[:5])}", differ)]


def _short(x: Any) -> str:
    x = x.get("content", x) if isinstance(x, dict) else x
    text = str(x)
    return text if len(text) <= 40 else f"{len(text)} characters"
