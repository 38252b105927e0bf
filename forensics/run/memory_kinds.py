"""Which kind of out of memory it was, from the words of the error and from what the metrics did before it.

The caching allocator of torch says how much it asked for, had allocated and held in reserve (CUDACachingAllocator.cpp:
"Tried to allocate ... Of the allocated memory X is allocated by PyTorch, and Y is reserved by PyTorch but
unallocated"; before 2.1 "(GPU 0; C total capacity; X already allocated; F free; R reserved in total by PyTorch)").
Kinds (`words` complete "Out of memory: ..."): host, shared, evaluation, saving, leak, fragmentation, long_batch, one_request, first_step, open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from forensics.run import endings, memory_budget, system_metrics
from forensics.run.inputs import surviving
from forensics.run.kinds import Kind
from forensics.run.robust import median
from forensics.run.series import Series, series
from parsers import arrow
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

GROWTH, RISING, HALF_ROWS = 0.15, 0.9, 20
FIRST_STEPS = 3  # all that is allocated once (optimizer state, buffers) is there after the second step
HOLE = 0.1  # reserved but unallocated, as a share of what the process holds, that makes fragmentation the reading
JUMP = 0.15  # the last values against those before, for one long batch
LARGE = 0.25  # one request, as a share of the device
LENGTHS = lazy_re(
    r"(?i)(?:^|[/_. ])(?:max_?|mean_?|padded_?)?(?:seq(?:uence)?_?len(?:gth)?|length|(?:batch|num|n)_?tokens|tokens_(?:in|per)_batch)"
)

_SIZE = r"(?<![\d.])([\d.]++) ([KMGT]i?B|bytes)"
_TOLD = {
    "tried": lazy_re(r"Tried to allocate " + _SIZE),
    "capacity": lazy_re(r"total capacity of " + _SIZE + r"|" + _SIZE + " total capacity"),
    "free": lazy_re(r"of which " + _SIZE + r" is free|; " + _SIZE + " free"),
    "held": lazy_re(r"this process has " + _SIZE + " memory in use"),
    "allocated": lazy_re(r"allocated memory " + _SIZE + r" is allocated by PyTorch|" + _SIZE + " already allocated"),
    "hole": lazy_re(r"(?:and|,) " + _SIZE + " is reserved by PyTorch but unallocated"),
    "reserved": lazy_re(_SIZE + " reserved in total by PyTorch"),
}
_HOST = lazy_re(
    r"(?i)oom[-_ ]?kill|killed process|DefaultCPUAllocator|std::bad_alloc|\bMemoryError\b|cannot allocate memory|OOMKilled"
    r"|tasks? [\d,-]+: Out Of Memory|exceeded (?:job|step)? ?memory|killed by signal: Killed|Unable to allocate"
)
_EVALUATING = lazy_re(
    r"(?i) in (?:(?>\w*?(?<![^\W_])(?:eval|evaluate|evaluation|validate|validation)(?![^\W_]))\w*"
    r"|_?(?:val|valid|test|predict)(?:_(?:step|epoch|loop|model|one_epoch))?|estimate_loss)[\],]"
)
SAVING = lazy_re(
    r"(?i) in (?:_?save|(?>\w*?(?<![^\W_])save_)(?>\w*?(?<=_)(?:checkpoint|ckpt|model|state|weights|pretrained|optimizer)(?![^\W_]))\w*)[\],]"
)
SLACK = 1.5 * 2**30  # bytes: context, libraries and communication buffers, which the older message does not count


def sizes(text: str) -> dict[str, float]:
    """The figures of an out-of-memory error, in bytes: tried, capacity, free, held, allocated, reserved, hole."""
    found = {}
    for name, pattern in _TOLD.items():
        if (m := pattern.search(text)) is not None:
            number, unit = [g for g in m.groups() if g][:2]
            found[name] = float(number.rstrip(".")) * 1024.0 ** "bKMGT".index(unit[0])
    if "hole" not in found and {"reserved", "allocated"} <= set(found):
        found["hole"] = max(found["reserved"] - found["allocated"], 0.0)
    return found


def of_run(run: Run, said: Sequence[dict[str, Any]], step: int | None) -> Kind:
    """The kind of an out-of-memory error; `said`: the lines that speak of it; `step`: the last one that was logged."""
    text = "\n".join(str(e["text"]) for e in said)
    told: dict[str, float] = {}
    for e in said:
        told = sizes(str(e["text"])) | told
    if not told and _HOST.search(text):
        return _host(run)
    mine = told.get("held") or told.get("reserved", np.inf) + SLACK
    others = told.get("capacity", 0.0) - told.get("free", 0.0) - mine
    if told.get("capacity") and others >= 0.2 * told["capacity"]:
        return Kind(
            "shared", "other processes held the device", f"Of {_gib(told['capacity'])}, others than this process hold {_gib(others)}.",
            ("Look for other processes on that device (nvidia-smi), and for ranks that share one by mistake.",),
        )  # fmt: skip
    if (kind := _phase(run, text, step)) is not None:
        return kind
    if (kind := leak(run)) is not None:
        return kind
    hole, held = told.get("hole", 0.0), told.get("allocated", 0.0) + told.get("hole", 0.0)
    if hole and hole >= told.get("tried", np.inf) and hole >= HOLE * held:
        return Kind(
            "fragmentation", "fragmentation",
            f"{_gib(told['tried'])} did not fit into {_gib(hole)} that was reserved but unallocated, a share of {hole / held:.0%}.",
            ("Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.", "Pad to a few fixed lengths, so that blocks can be used again."),
        )  # fmt: skip
    if (kind := _long_batch(run, step)) is not None:
        return kind
    begin = run.attempts[-1]["steps"][0] if run.attempts else 0
    if step is None or step - begin <= FIRST_STEPS:
        if (state := memory_budget.too_large(run, told.get("capacity"))) is not None:
            return Kind("first_step", "weights and optimizer state that leave no room", *state)
        return Kind(
            "first_step", "a configuration that never fitted", "No step had been finished before, or a few: the configuration never fitted.",
            ("Halve the micro-batch and double the accumulation.", "Turn on activation checkpointing, or shard the optimizer's state."),
        )  # fmt: skip
    whole = told.get("capacity") or held
    if told.get("tried") and whole and told["tried"] >= LARGE * whole:
        return Kind(
            "one_request", f"one request for {_gib(told['tried'])}", f"One request asked for {told['tried'] / whole:.0%} of the device.",
            ("Find the tensor of that size: logits of a long batch, an attention matrix, a gathered parameter.",),
        )  # fmt: skip
    return Kind("open")


def _host(run: Run) -> Kind:
    for name in ("mem.process", "mem.host"):
        for m in system_metrics.clocked(run, name):
            if (more := system_metrics.smooth_growth(m.value)) is not None and more >= GROWTH:
                return Kind(
                    "host", "memory of the host, which grew until the end", f"{m.tag} grew by {more:.0%} over the second half of the run.",
                    ("Watch the memory of the loader's workers: copies of Python objects grow with every epoch.",),
                )  # fmt: skip
    return Kind(
        "host", "memory of the host, not of a device", "The lines come from the kernel, the scheduler or a host allocator.",
        ("Ask for more host memory, or start fewer loader workers.", "Look at what each rank loads: a checkpoint read by all ranks of a node at once."),
    )  # fmt: skip


def _phase(run: Run, text: str, step: int | None) -> Kind | None:
    """During an evaluation or a save: by the stack, by a line that begins one, or by the cadence of evaluations."""
    do = ("Evaluate with a smaller batch, under no_grad, and move outputs to the host batch by batch.",)
    if _EVALUATING.search(text):
        return Kind("evaluation", "during an evaluation", "The stack trace is in an evaluation.", do)
    if SAVING.search(text):
        do = ("Save sharded, or move the state to the host tensor by tensor.",)
        return Kind("saving", "while saving a checkpoint", "The stack trace is in saving a checkpoint.", do)
    begun = [e["step"] for e in endings.events(run, "evaluation") if e["step"] is not None]
    s = series(run, "loss.eval")
    done = s.step if s is not None else np.array([], np.int64)
    if step is not None and begun and max(begun) >= step and not (done >= max(begun)).any():
        return Kind("evaluation", "during an evaluation", f"An evaluation began at step {max(begun)} and gave no number.", do)
    every = np.diff(np.unique(done))
    if step is not None and len(every) >= 2 and (every == every[0]).all() and every[0] >= 10 and not (done >= step).any():
        train = series(run, "loss.train")
        due = int(done.max() + every[0])
        if due - (train.interval if train is not None else 1) < step + 1 <= due + 1:
            why = f"Every {every[0]} steps there was an evaluation; that of step {due} gave no number."
            return Kind("evaluation", "where an evaluation was due", why, do)
    return None


def leak(run: Run) -> Kind | None:
    """Memory that grew, step by step, until the end."""
    do = (
        "Look for losses or outputs kept with their graph (`total += loss` instead of `loss.item()`), and for hooks and caches.",
        "Record allocations of two steps (torch.cuda.memory._record_memory_history) and compare.",
    )
    for name in ("mem.alloc", "mem.reserved", "gpu.mem"):
        s = series(run, name)
        grown = growth(s) if s is not None else None
        if s is not None and grown is not None:
            share, a_step, tag = grown
            why = f"{tag} grew by {share:.0%} over the second half of the run, by {_amount(a_step, s.unit)} a step: something of every step is kept."
            return Kind("leak", "a leak", why, do, growth=share, per_step=a_step)
    for m in system_metrics.clocked(run, "gpu.mem"):
        if (more := system_metrics.smooth_growth(m.value)) is not None and more >= GROWTH:
            return Kind("leak", "a leak", f"{m.tag} grew by {more:.0%} over the second half of the run.", do, growth=more)
    return None


def growth(s: Series) -> tuple[float, float, str] | None:
    """(relative growth over the last half, growth a step, tag), where more than nine of ten stretches rise."""
    rows = surviving(s)
    half = rows[len(rows) // 2 :]
    if len(half) < HALF_ROWS:
        return None
    parts = [median(p) for p in np.array_split(s.value[half], 12)]
    share = parts[-1] / parts[0] - 1 if parts[0] > 0 else 0.0
    if share < GROWTH or float(np.mean(np.diff(parts) > 0)) < RISING:
        return None
    steps = max(int(s.step[half[-1]] - s.step[half[0]]), 1)
    return share, (parts[-1] - parts[0]) * 12 / 11 / steps, s.tag


def _long_batch(run: Run, step: int | None) -> Kind | None:
    """The last values of a length or of memory stand above everything before."""
    do = ("Cap or bucket the sequence length, and sort out the longest samples.", "Bound the batch by tokens, not by samples.")
    lengths = [n for n in _names(run) if LENGTHS.search(n.removeprefix("other/"))]
    for name in [*lengths, "mem.alloc", "gpu.mem"]:
        s = series(run, name)
        rows = surviving(s) if s is not None else np.array([], np.int64)
        if s is None or len(rows) < 2 * HALF_ROWS or (step is not None and step - s.step[rows[-1]] > 2 * s.interval):
            continue
        last, before = float(s.value[rows[-1]]), s.value[rows[len(rows) // 4 : -1]]
        if before.min() > 0 and last >= (1 + JUMP) * float(before.max()):
            return Kind("long_batch", "one long batch", f"The last {s.tag} is {last:.4g}; the highest before was {before.max():.4g}.", do)
    return None


def _names(run: Run) -> list[str]:
    return [n for n in arrow.distinct(run.tables["metrics"]["name"]) if n]


def _gib(size: float) -> str:
    return f"{size / 2**30:.3g} GiB" if size >= 2**29 else f"{size / 2**20:.3g} MiB"


def _amount(value: float, unit: str) -> str:
    return _gib(value) if unit in ("bytes", "B") else f"{value:.3g} {unit}".strip()
