"""Which of the loaders that config allows agree with the log: its epochs, the ids of steps that it records, spikes that recur."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from forensics.batches import data_order_facts, default_loaders, framework_loaders
from forensics.batches.loader import Loader, shifted
from forensics.batches.recorded import recorded
from forensics.batches.torch_random import TooLarge
from forensics.run.endings import step_origin
from forensics.run.once import once
from forensics.run.robust import robust_sigma
from forensics.run.series import series
from forensics.spikes import medians
from parsers.tables import Run

PROBES = 12  # recorded steps that a loader has to give
HIGH, MOST_SPIKES = 12.0, 12  # noise sigmas of a value that counts as a spike here, and how many are used at most
QUICK, THOROUGH = 1_000_000, 30_000_000  # entries of orders that may be worked out for the sake of spikes that recur
CHANCE = 1e-3  # that a spike's samples meet again by accident, corrected for the number of loaders


@dataclass(frozen=True)
class Fit:
    """The loaders that agree with the log in one attempt of the run; `by` is the evidence that told them from the others."""

    loaders: tuple[Loader, ...]
    by: str  # "" | "epochs" | "recurrence" | "recorded"
    evidence: tuple[str, ...]
    missing: str  # a sentence where there is no loader


@once
def fit(run: Run, attempt: int, work: int = QUICK) -> Fit:
    """The loaders of one attempt; `work` is how much may be tried."""
    loaders, missing = framework_loaders.candidates(run)
    loaders, evidence = _by_epochs(run, loaders)
    loaders = _after_restart(run, loaders, attempt)
    probes = _probes(run, attempt)
    if probes:
        found = [x for x in loaders if _gives(run, x, probes)]
        others = [] if found else _after_restart(run, default_loaders.loaders(run)[0], attempt)  # a framework with a sampler of one's own
        found = found or [x for x in others if _gives(run, x, probes)]
        if found:
            found = [x for x in found if _gives(run, x, probes, in_order=True)] or found
            return Fit(tuple(found), "recorded", (*evidence, f"it gives the ids that are recorded for {_steps(probes)}"), "")
        tried = len(loaders) + len(others)
        none = f"none of {tried} default loaders gives the ids recorded for {_steps(probes)}"
        return Fit((), "", (), none if tried else missing)
    named = tuple(x for x in loaders if x.named)
    if named:
        return Fit(named, "epochs" if evidence else "", tuple(evidence), "")
    recurring = _by_recurrence(run, loaders, work)
    if recurring:
        again = "under it a sample of one spike is there again at another, in a later epoch"
        return Fit(tuple(recurring), "recurrence", (*evidence, again), "")
    if loaders:
        missing = (
            f"{len(loaders)} default loaders agree with config and log, and nothing tells which it was: "
            "the ids of any one batch would, or a setting that names the sampler"
        )
    return Fit((), "", (), missing or "no usual loader has epochs as long as the log's")


def index(run: Run, step: int) -> int:
    """Optimizer steps done before a step; with DeepSpeed's axis of samples the label itself."""
    return step if data_order_facts.sample_axis(run) is not None else step - step_origin(run)


def _after_restart(run: Run, loaders: list[Loader], attempt: int) -> list[Loader]:
    """What each may do after the restart that began this attempt."""
    if not attempt or attempt >= len(run.attempts):
        return loaders
    first = index(run, _resumed(run, attempt))
    return [shifted(x, how, first) for x in loaders for how in x.resumes]


def _resumed(run: Run, attempt: int) -> int:
    """The first step of an attempt: the one after the checkpoint it came from, where that lies just before its first row."""
    first: int = run.attempts[attempt]["steps"][0]
    s = series(run, "loss.train")
    saved = [x for x in run.tables["checkpoints"]["step"].to_pylist() if x is not None]
    near = [x for x in saved if first - (s.interval if s is not None else 1) <= x < first]
    return max(near) + 1 if near else first


# --- epochs


def _by_epochs(run: Run, loaders: list[Loader]) -> tuple[list[Loader], list[str]]:
    bounds = data_order_facts.epoch_length(run)
    if bounds is None:
        return loaders, []
    low, high, tag = bounds
    kept = [x for x in loaders if x.length is None or low - 1e-6 <= x.length <= high + 1e-6 or _by_samples(x, low, high)]
    if kept and math.isfinite(high) and any(x.length for x in kept):
        steps = f"{low:.6g}" if high - low < 0.01 else f"{low:.6g} to {high:.6g}"
        return kept, [f"'{tag}' grows by one in {steps} steps, as it does with this loader"]
    return kept, []


def _by_samples(x: Loader, low: float, high: float) -> bool:
    """Some count the epoch in samples done, so that it ends between two steps where a short last batch is dropped."""
    return x.size is not None and x.total is not None and low - 1e-6 <= x.size / x.total <= high + 1e-6


# --- recorded ids


def _probes(run: Run, attempt: int) -> list[tuple[int, list[Any]]]:
    """(step, samples) of recorded steps in this attempt: the first, the last and some between."""
    first = run.attempts[attempt]["steps"][0] if 0 < attempt < len(run.attempts) else -math.inf
    later = min((a["steps"][0] for a in run.attempts[attempt + 1 :]), default=math.inf)
    known: dict[int, list[Any]] = {}
    for (other, step), (samples, _) in recorded(run).items():
        # a manifest without clocks guesses the attempt of a line; of steps that were done once there is no doubt
        if samples and step >= first and (other == attempt or step < later):
            known.setdefault(step, samples)
    usable = sorted(s for s, x in known.items() if all(isinstance(i, int) for i in x))
    if not usable:
        return []
    picked = np.unique(np.linspace(0, len(usable) - 1, min(PROBES, len(usable))).astype(int))
    return [(usable[i], known[usable[i]]) for i in picked]


def _gives(run: Run, loader: Loader, probes: list[tuple[int, list[Any]]], *, in_order: bool = False) -> bool:
    """Whether the loader gives the recorded ids, of all ranks or of one; `in_order`: rank by rank in the order of the record."""
    arranged: Any = list if in_order else sorted
    for step, samples in probes:
        try:
            ranks = loader.step(index(run, step))
        except TooLarge:
            return False
        if not ranks:
            return False
        wanted = arranged(samples)
        whole = arranged(np.concatenate(ranks).tolist())
        if wanted != whole and all(wanted != arranged(r.tolist()) for r in ranks):
            return False
    return True


def _steps(probes: list[tuple[int, list[Any]]]) -> str:
    return f"step {probes[0][0]}" if len(probes) == 1 else f"{len(probes)} steps from {probes[0][0]} to {probes[-1][0]}"


# --- spikes that come back


def _by_recurrence(run: Run, loaders: list[Loader], work: int) -> list[Loader]:
    """Loaders under which spikes in different epochs share samples far more often than chance would have it."""
    spikes = _spikes(run)
    found = []
    for x in loaders if len(spikes) > 1 else ():
        if not x.length or not x.size:
            continue
        epochs = {index(run, s) // x.length for s in spikes}
        work -= len(epochs) * x.size
        if len(epochs) < 2 or work < 0:
            continue
        try:
            batches = [(index(run, s) // x.length, set(np.concatenate(ranks).tolist())) for s in spikes if (ranks := x.step(index(run, s)))]
        except TooLarge:
            continue
        shared, expected = 0, 0.0
        for i, (epoch, a) in enumerate(batches):
            for other, b in batches[i + 1 :]:
                if epoch != other:
                    shared += bool(a & b)
                    expected += len(a) * len(b) / x.size
        if shared and _poisson_tail(shared, expected) * len(loaders) < CHANCE:
            found.append(replace(x, named=True))
    return found


def _spikes(run: Run) -> list[int]:
    s = series(run, "loss.train")
    if s is None or s.interval > 1:
        return []
    keep = s.usable
    steps, x = s.step[keep], s.value[keep]
    if len(x) < 100:
        return []
    rest = x - medians.centred_median(x, 31)
    sigma = robust_sigma(rest) or math.inf
    high = np.flatnonzero(rest > HIGH * sigma)
    high = high[np.argsort(-rest[high])][:MOST_SPIKES]
    return sorted(int(steps[i]) for i in high)


def _poisson_tail(k: int, mean: float) -> float:
    """P(X >= k) of a Poisson count."""
    return max(1.0 - sum(math.exp(-mean) * mean**i / math.factorial(i) for i in range(k)), mean**k * math.exp(-mean) / math.factorial(k))
