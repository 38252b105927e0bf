"""A known good run beside the run in question (`analyze --baseline`): where they part, and what that says about each cause.

The finding is information, not a fault of its own: to be unlike the baseline is no illness. Its clues go to causes that were
weighed already. They rest on the settings that differ, on the steps to which both computed equal values, and on whether the baseline, too, spikes
on the same data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from forensics import evidence
from forensics.case import Check, Clue, Finding, Hypothesis
from forensics.many_runs import config_diff, parting
from forensics.many_runs.side_by_side import data_order, own_spikes
from forensics.run import settings
from forensics.run.recipe import Recipe, recipe
from forensics.run.series import series
from parsers.tables import Run

KIND = "baseline_parting"
NEAR = 2  # steps


@dataclass(frozen=True)
class Beside:
    """The run and its baseline, with what the clues ask for."""

    run: Run
    base: Run
    parted: parting.Parting | None
    differs: list[dict[str, Any]]
    order: dict[str, Any]
    findings: tuple[Finding, ...]

    @property
    def recipes(self) -> tuple[Recipe, Recipe]:
        return recipe(self.run), recipe(self.base)


def beside(run: Run, base: Run) -> Beside:
    """Compares the two; its ``findings`` are at most one."""
    one, two = series(base, "loss.train"), series(run, "loss.train")
    parted = parting.find(one, two) if one is not None and two is not None else None
    equal = parted is not None and parted.equal >= 3
    differs = config_diff.differences(base, run, equal_at_first=equal)
    order = data_order(base, run)
    return Beside(run, base, parted, differs, order, tuple(_findings(base, parted, differs)))


def _findings(base: Run, parted: parting.Parting | None, differs: list[dict[str, Any]]) -> list[Finding]:
    if parted is None:
        return []
    at = parted.level if parted.level is not None else parted.excursion
    if at is None:
        return []
    equal = f" (equal to step {parted.last_equal})" if parted.equal >= 3 else ""
    what = "The loss leaves the baseline's" if parted.level is not None else "The loss jumps where the baseline's does not"
    first = differs[0] if differs and differs[0]["suspicion"] >= 30 else None
    blame = (
        f"; the most suspect setting: {first['key']}, {first['a']} there, {first['b']} here"
        if first
        else "; no setting that was logged explains it"
    )
    rows = [[d["key"], str(d["a"]), str(d["b"]), f"{d['suspicion']:.0f}", d["why"]] for d in differs[:30]]
    shown = evidence.table(
        "settings that differ from the baseline", ["setting", "baseline", "this run", "suspicion", "why"], rows, base.path
    )
    facts = {"baseline": base.path, "equal": parted.equal, "level": parted.level, "last_difference": parted.last_difference}
    return [Finding(f"{KIND}-{at}", KIND, f"{what} at step {at}{equal}{blame}", at, at, "info", (shown,), facts)]


def check(b: Beside) -> Check:
    if b.parted is None:
        return Check(KIND, "cannot_tell", "the loss of this run and of the baseline have too few steps in common")
    if b.findings:
        return Check(KIND, "fired", "1 found")
    return Check(KIND, "clear", "", f"a level that differs by {parting.SMALLEST:.1%} beyond the noise, over {b.parted.common} common steps")


def clues(hypotheses: Sequence[Hypothesis], b: Beside, findings: Sequence[Finding]) -> list[Hypothesis]:
    """The causes with what the baseline says about them."""
    out = []
    for h in hypotheses:
        rule = RULES.get(h.id)
        found = rule(b, findings) if rule is not None else None
        ids = tuple(f.id for f in b.findings)
        out.append(replace(h, clues=(*h.clues, Clue(found[1], found[0], ids))) if found is not None else h)
    return out


Said = tuple[float, str] | None


def _rate(b: Beside, findings: Sequence[Finding]) -> Said:
    here, there = (r.rate for r in b.recipes)
    if not here or not there:
        return None
    if here > 1.5 * there:
        return 6.0, f"The baseline's peak rate is {there:.3g}, here it is {here:.3g}."
    if here <= 1.05 * there and b.parted is not None and (b.parted.level is not None or b.parted.excursion is not None):
        return -5.0, f"The baseline took the same rate ({there:.3g}) without this."
    return None


def _low_rate(b: Beside, findings: Sequence[Finding]) -> Said:
    here, there = (r.rate for r in b.recipes)
    return (5.0, f"The baseline's peak rate is {there:.3g}, here it is {here:.3g}.") if here and there and here < 0.5 * there else None


def _warmup(b: Beside, findings: Sequence[Finding]) -> Said:
    here, there = (r.warmup for r in b.recipes)
    if here is None or there is None:
        return None
    if here < 0.5 * there:
        return 5.0, f"The baseline warms up over {there:g} steps, this run over {here:g}."
    return (-4.0, f"The baseline warms up no longer ({there:g} steps).") if here >= there else None


def _clip(b: Beside, findings: Sequence[Finding]) -> Said:
    here, there = (r.clip for r in b.recipes)
    if there and here == 0:
        return 6.0, f"The baseline clips at {there:g}, this run does not."
    return (-4.0, "The baseline does not clip either.") if there == 0 and here == 0 else None


def _precision(b: Beside, findings: Sequence[Finding]) -> Said:
    here, there = settings.precision(b.run), settings.precision(b.base)
    if here == "fp16" and there not in (None, "fp16"):
        return 6.0, f"The baseline runs in {there}, this one in fp16."
    return (-4.0, "The baseline runs in fp16, too.") if here == there == "fp16" else None


def _differ(*names: str) -> Callable[[Beside, Sequence[Finding]], Said]:
    def rule(b: Beside, findings: Sequence[Finding]) -> Said:
        pairs = [(n, settings.number(b.base, n), settings.number(b.run, n)) for n in names]
        other = [(n, x, y) for n, x, y in pairs if x is not None and y is not None and x != y]
        if not other:
            return None
        return 5.0, "Unlike the baseline: " + ", ".join(f"{n} {x:g} there, {y:g} here" for n, x, y in other) + "."

    return rule


def _evaluation(b: Beside, findings: Sequence[Finding]) -> Said:
    keys = [d["key"] for d in b.differs if d["kind"] == "evaluation" and d["suspicion"] >= 30]
    return (5.0, f"The evaluation is set otherwise than in the baseline: {', '.join(keys[:4])}.") if keys else None


def _data(b: Beside, findings: Sequence[Finding]) -> Said:
    """The same batch in the baseline: harmful there, too, or not."""
    if b.order["order"] != "same":
        return None
    starts = [f.facts["start"] for f in findings if f.kind == "loss_spike" and f.facts.get("class") != "not_a_spike"]
    if not starts:
        return None
    shift = b.order["shift"] or 0
    there = [s["start"] + shift for s in own_spikes(b.base)[0]]
    both = [s for s in starts if any(abs(s - t) <= NEAR for t in there)]
    if both:
        return 8.0, f"The baseline reads the same data in the same order, and spikes there, too (step {both[0]})."
    return -4.0, f"The baseline reads the same data in the same order and passes step {starts[0]} unharmed: the batch alone does not do it."


def _hardware(b: Beside, findings: Sequence[Finding]) -> Said:
    causes = [d for d in b.differs if d["kind"] not in ("name or place", "environment") and d["suspicion"] >= 10]
    if b.parted is None or b.parted.equal < 10 or b.parted.first_unequal is None or causes:
        return None
    return (
        7.0,
        f"One config, equal values to step {b.parted.last_equal}, other ones from step {b.parted.first_unequal}: the machine computed something else.",
    )


RULES: dict[str, Callable[[Beside, Sequence[Finding]], Said]] = {
    "lr_too_high": _rate,
    "lr_too_low": _low_rate,
    "warmup_too_short": _warmup,
    "gradient_clipping_missing": _clip,
    "fp16_overflow": _precision,
    "optimizer_second_moment": _differ("eps", "beta2"),
    "init_too_large": _differ("init_std"),
    "eval_changed": _evaluation,
    "bad_data_batch": _data,
    "silent_data_corruption": _hardware,
}
