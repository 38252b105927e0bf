"""How many samples a step takes and who takes them: (batch of a process, processes, accumulation), as config and log leave it open."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from forensics.batches import data_order_facts
from forensics.run import settings
from forensics.run.endings import step_origin
from forensics.run.series import series
from parsers import arrow
from parsers.tables import Run

EACH = (
    "per_device_train_batch_size per_device_batch_size instantaneous_batch_size_per_device micro_batch_size "
    "train_micro_batch_size_per_gpu device_batch_size local_batch_size per_gpu_train_batch_size"
)
ALL = "global_batch_size total_batch_size effective_batch_size total_train_batch_size global_train_batch_size"
SOME = "batch_size train_batch_size bsz"  # of a process or of all: names that people use for both
_DATASET = (
    "num_samples num_examples dataset_size train_dataset_size dataset_length dataset_len num_train_examples n_train train_size n_samples"
)
WORLDS = (1, 2, 4, 8)  # tried where nothing says how many processes there were


@dataclass(frozen=True)
class Size:
    """One way to deal a step: `assumed` names what no file says."""

    micro: int
    world: int
    accumulation: int
    rests_on: tuple[str, ...]
    assumed: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return self.micro * self.world * self.accumulation

    def __str__(self) -> str:
        parts = [f"batches of {self.micro}"]
        parts += [f"{self.world} processes"] if self.world > 1 else []
        parts += [f"{self.accumulation} a step"] if self.accumulation > 1 else []
        return ", ".join(parts)


def flag(run: Run, name: str) -> bool | None:
    """A setting that is on or off, None where nothing says which."""
    found = settings.named(run, name)
    value = found[-1].value if found else None
    return value if isinstance(value, bool) else {"true": True, "false": False}.get(str(value).lower())


def text(run: Run, name: str) -> str | None:
    """A setting that is a word, in lower case, without the name of an enumeration before it."""
    found = settings.named(run, name)
    return str(found[-1].value).rsplit(".", 1)[-1].lower() if found and found[-1].value is not None else None


def dataset(run: Run) -> tuple[int, str] | None:
    """The number of training samples by config."""
    return whole(run, _DATASET)


def counted(found: settings.Setting | None, least: float = 1, most: float = math.inf) -> tuple[int, str] | None:
    """A setting that is a whole number within bounds, with the sentence "batch_size 16 (args.json line 3)"."""
    value = settings.as_number(found.value) if found else None
    if found is None or value is None or not least <= value <= most or value != int(value):
        return None
    return int(value), f"{found.key} {int(value)} ({found.where})"


def whole(run: Run, names: str) -> tuple[int, str] | None:
    """A positive whole number among settings of these names, with its sentence; the last one said."""
    return next((said for found in reversed(settings.named(run, names)) if (said := counted(found))), None)


def samples_a_step(run: Run) -> tuple[int, str] | None:
    """Samples of an optimizer step over all processes, from the log or a setting; None where unknown or where it changes."""
    told = logged(run)
    return told if told or data_order_facts.consumed(run) is not None else whole(run, ALL)


def logged(run: Run) -> tuple[int, str] | None:
    """Samples of an optimizer step by the log alone; None where it does not say, or where they change."""
    taken = data_order_facts.consumed(run)
    if taken is not None:
        steps = sorted([step_origin(run) - 1, *taken.after])
        counts = [taken.after.get(s, 0) for s in steps]
        rates = {(b - a) / (t - s) for s, t, a, b in zip(steps, steps[1:], counts, counts[1:], strict=False)}
        if len(rates) == 1 and (rate := rates.pop()) == int(rate) and rate > 0:
            return int(rate), f"{taken.what} grows by {int(rate)} a step"
        return None
    s = series(run, "batch.size")
    if s is not None and len(s) and s.unit in ("", "samples") and np.isfinite(s.value).all() and len(set(s.value.tolist())) == 1:
        return int(s.value[0]), f"'{s.tag}' is {int(s.value[0])}"
    return None


def sizes(run: Run) -> list[Size]:
    """Every way that config and log allow, the plainest first; [] where no batch size is known."""
    total = samples_a_step(run)
    each, some = whole(run, EACH), whole(run, SOME)
    worlds = _worlds(run)
    accumulation, accumulation_said = counted(settings.setting(run, "accumulation")) or (1, "")
    known = each or some
    if known is None:
        return [Size(total[0], 1, 1, (total[1],), ("one process",))] if total else []
    found: list[Size] = []
    for world, world_said, sure in worlds:
        rests = [x for x in (known[1], world_said if sure else "", accumulation_said, total[1] if total else "") if x]
        assumed = () if sure or (total and len(worlds) > 1 and known[0] * world * accumulation == total[0]) else (world_said,)
        ways = [known[0]]
        if each is None:  # it may be meant for all processes, or for all micro-batches too
            ways += [known[0] // k for k in (world, world * accumulation) if k > 1 and known[0] % k == 0]
        for micro in dict.fromkeys(ways):
            if total is None or micro * world * accumulation == total[0]:
                found.append(Size(micro, world, accumulation, tuple(rests), assumed))
    if total is not None and not found and known[0] and total[0] % known[0] == 0:
        found.append(Size(known[0], total[0] // known[0], 1, (known[1], total[1]), ("that the steps are shared out among processes",)))
    return found


def _worlds(run: Run) -> list[tuple[int, str, bool]]:
    """(processes, said, whether a file says it)."""
    for found in reversed(settings.settings(run, "world_size")):
        if said := counted(found, most=100_000):
            return [(*said, True)]
    ranks = arrow.distinct(run.tables["batches"]["rank"])
    if len(ranks) > 1:
        return [(ranks[-1] + 1, f"ranks 0 to {ranks[-1]} in the manifest", True)]
    return [(w, f"{w} process{'es' if w > 1 else ''}", False) for w in WORLDS]
