"""Runs of one recipe under several seeds: how far apart they end, and whether this one alone shows its trouble."""

from __future__ import annotations

import importlib
import math

import numpy as np

from forensics.case import Finding
from forensics.detectors import seed_spread
from forensics.errors import CannotTell
from forensics.findings import GRAVE
from forensics.run.robust import median
from forensics.run.series import series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.tables import Run

_UNSTABLE = ("divergence", "loss_spike", "level_shift", "oscillation")  # a recipe at its edge does this under some seeds
_ALONE = "one run lies here, or the runs differ in more than their seed."


def seeds_end_apart(s: Symptoms) -> Sign:
    """Runs that differ only in their seed end more than 40 % apart, by three times what the noise inside a run explains; policies whose rewards
    end apart by half of what the best seed gains."""
    found = s.of(seed_spread.Facts)
    if found:
        facts = found[0].facts
        of = " of what the best one gained" if facts.metric == "rl.reward" else ""
        text = f"{facts.runs} runs of one configuration end up to {facts.apart:.0%}{of} apart ({facts.metric})."
        return seen(text, found, apart=facts.apart, runs=facts.runs, best=facts.best, worst=facts.worst, first=None, last=None)
    if len(s.run.group) < 2:
        return does_not_arise(_ALONE)
    ends = [told[0] for r in s.run.group if (told := seed_spread.rewards(r)) is not None]
    if len(ends) > 1:
        return absent(f"{len(ends)} runs that differ only in their seed end between {min(ends):.4g} and {max(ends):.4g} of reward.")
    for name in ("loss.eval", "loss.train"):
        known = [x for r in s.run.group if (x := _last_level(r, name)) is not None and x > 0]
        if len(known) > 1:
            apart = math.expm1(math.log(max(known) / min(known)))
            return absent(
                f"{len(known)} runs that differ only in their seed end {apart:.1%} apart, between {min(known):.4g} and {max(known):.4g} ({name})."
            )
    return cannot_tell("fewer than two of the runs logged a loss or a reward.")


def seeds_bear_it(s: Symptoms) -> Sign:
    """This run shows a grave trouble, and no other seed of the same recipe does."""
    others = [r for r in s.run.group if r is not s.run and r.id != s.run.id]
    if not others:
        return does_not_arise(_ALONE)
    grave = [f for f in _grave(s) if f.severity == "critical"] or _grave(s)
    if not grave:
        return does_not_arise(f"this run shows no grave trouble that {len(others)} other seeds could share.")
    judged = {r.id: told for r in others if (told := _shows(r, grave[0].kind)) is not None}
    if not judged:
        return cannot_tell(f"the other seeds did not log what is needed to look for the same: {grave[0].title}.")
    sharing = [name for name, shows in judged.items() if shows]
    if sharing:
        return absent(f"{len(sharing)} of {len(judged)} other seeds show the same kind of trouble ({', '.join(sharing[:3])}).", grave[:1])
    text = f"{grave[0].title}, in this run alone: {len(judged)} other seed{'s' * (len(judged) > 1)} of the recipe {'show' if len(judged) > 1 else 'shows'} nothing of the kind."
    return seen(text, grave[:1], runs=len(judged), first=grave[0].first_step, last=grave[0].last_step)


def run_broke(s: Symptoms) -> Sign:
    """This run of several seeds broke (a crash, NaN, damage), which sets it apart without help of its seed."""
    if len(s.run.group) < 2:
        return does_not_arise(_ALONE)
    broken = [f for f in s.findings if f.severity == "critical" and f.kind not in _UNSTABLE]
    if broken:
        return seen(f"{broken[0].title}.", broken[:3], first=broken[0].first_step, last=broken[0].last_step)
    return absent("No crash, NaN or damage was found in the run shown here.")


def _grave(s: Symptoms) -> list[Finding]:
    return [f for f in s.findings if f.severity in GRAVE and f.kind != "seed_spread" and getattr(f.facts, "class_", "") != "not_a_spike"]


def _shows(run: Run, kind: str) -> bool | None:
    """Whether a detector finds something grave in another run; None where it cannot judge."""
    try:
        detector = importlib.import_module(f"forensics.detectors.{kind}")
    except ImportError:  # a finding of another package
        return None
    if any(not any(series(run, n) for n in need.split("|")) for need in detector.NEEDS):
        return None
    try:
        found = list(detector.detect(run))
    except CannotTell:
        return None
    return any(f.severity in GRAVE and getattr(f.facts, "class_", "") != "not_a_spike" for f in found)


def _last_level(run: Run, name: str) -> float | None:
    """The median of the last tenth of a metric, of three values at least."""
    found = series(run, name)
    values = found.value[found.usable] if found is not None else np.zeros(0)
    return median(values[-max(len(values) // 10, 3) :]) if len(values) >= 3 else None
