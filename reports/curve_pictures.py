"""Pictures that are curves over the steps: memory against its card, the seeds of a group, a known good run beneath, evaluations with their error."""

from __future__ import annotations

from typing import Any

from reports import text_format, timeline_chart
from reports.chart import Curve, Look, panel
from reports.scales import Scale, points, value

Case = dict[str, Any]
TIMES = "times"  # the unit of a difference that is drawn as a ratio
HIGH, LOW, ROOM, COLUMNS = 180, 96, 480, 260  # pixels; columns of a curve


def memory(case: Case) -> Case | None:
    told = case["pictures"]["memory"]
    used = points(told["points"]) if told else []
    if not used:
        return None
    card, (step, most) = value(told["capacity"]), max(used, key=lambda p: p[1])
    says = f"At most {most:.4g} of {card:.4g} GiB ({100 * most / card:.0f} %), at step {int(step)}"
    says += f"; the last request was for another {value(told['tried']):.3g} GiB." if told["tried"] else "."
    x = _across([used])
    shown = [Curve(used, "run"), Curve([(x.lo, card), (x.hi, card)], "limit")]
    legend = [("k-run", told["tag"] or "memory in use"), ("limit", f"what the card has ({told['where']})")]
    return _picture(case, "memory", "Memory against the card, GiB", says, panel(shown, x, _look(says, HIGH)), x, legend)


def seeds(case: Case) -> Case | None:
    told = case["pictures"]["seeds"]
    runs = [r for r in told["runs"] if r["points"]] if told else []
    if len(runs) < 2:
        return None
    best, worst = runs[0], runs[-1]
    ends = f"the best at {text_format.number(value(best['last']))} ({best['id']}), the worst at {text_format.number(value(worst['last']))} ({worst['id']})"
    says = f"{text_format.plural(len(runs) + told['left_out'], 'run')} that differ in the seed end apart: {ends}."
    curves = [Curve(points(r["points"]), "seed") for r in runs[1:-1]]
    curves += [Curve(points(best["points"]), "run"), Curve(points(worst["points"]), "worst")]
    x = _across([c.points for c in curves])
    svg = panel(curves, x, _look(says, HIGH, told["scale"] == "log"))
    legend = [
        ("worst", f"{worst['id']}, the worst"),
        ("k-run", f"{best['id']}, the best"),
        *([("seed", "the others")] if len(runs) > 2 else []),
    ]
    title = f"All seeds of the group: {text_format.metric(told['metric'])}{', log scale' if told['scale'] == 'log' else ''}"
    return _picture(case, "seeds", title, says, svg, x, legend)


def baseline(case: Case) -> Case | None:
    told = case["pictures"]["baseline"]
    mine, good = (points(told[k]) for k in ("run", "baseline")) if told else ([], [])
    if not mine or not good:
        return None
    apart, log = told["difference"], told["scale"] == "log"
    says = verdict(apart, "this run", "the baseline")
    x = _across([mine, good])
    marks = [{"step": apart["parts"], "label": f"apart from {apart['parts']}", "kind": "event"}] if apart["parts"] is not None else []
    svg = panel([Curve(good, "base"), Curve(mine, "run")], x, _look(says, HIGH, log, marks))
    title = f"Beside the baseline: {text_format.metric(told['metric'])}{', log scale' if log else ''}"
    legend = [("k-run", "this run"), ("base", f"the baseline ({told['path']})")]
    return _picture(case, "baseline", title, says, svg, x, legend) | {"beneath": difference(apart, x, ("This run", "the baseline"))}


def evaluation(case: Case) -> Case | None:
    told = case["pictures"]["evaluation"]
    known = [p for p in told["points"] if len(p) == 3] if told else []
    if not known:
        return None
    curve, name = points([p[:2] for p in known]), text_format.metric(told["metric"])
    low, high = (points([[s, value(v) + way * 2 * value(e)] for s, v, e in known]) for way in (-1, 1))
    error = sorted(value(e) for _, _, e in known)[len(known) // 2]
    says = f"An evaluation is uncertain by \u00b1{text_format.number(2 * error)} (two standard errors, {told['how']}). "
    others = text_format.plural(told["alike"], "other")
    says += f"The best, at step {told['best']}, stands out from all others." if not told["alike"] else (
        f"The best, at step {told['best']}, does not stand out from {others}, the first at step {told['alike_from']}"
        f"{'; the last is one of them' if told['alike_last'] else ''}.")  # fmt: skip
    x = _across([curve])
    marks = [{"step": told["best"], "label": f"best: {told['best']}", "kind": "event"}]
    svg = panel([Curve(low, "noise"), Curve(high, "noise"), Curve(curve, "eval")], x, _look(says, HIGH, marks=marks))
    legend = [("k-eval", told["tag"] or name), ("noise", "two standard errors above and below")]
    return _picture(case, "evaluation", f"Evaluation with its error: {name}", says, svg, x, legend)


def difference(told: Case, x: Scale, name: tuple[str, str]) -> Case:
    """A panel of its own beneath two curves: their difference, its level, and what noise alone does."""
    noise, log = value(told["noise"]), told["unit"] == TIMES
    edge = [(1 + noise) ** 2, 1.0, (1 + noise) ** -2] if log else [2 * noise, 0.0, -2 * noise]
    edges = [Curve([(x.lo, v), (x.hi, v)], kind) for v, kind in zip(edge, ("noise", "zero", "noise"), strict=True)]
    drawn = [Curve(points(told["points"]), "seed"), *edges, Curve(points(told["level"]), "run")]
    title = f"{name[0]} over {name[1]}, log scale" if log else f"{name[0]} less {name[1]}{', ' * bool(told['unit'])}{told['unit']}"
    return {"title": title, "svg": panel(drawn, x, _look(title, LOW, log)),
            "legend": [("k-run", "running median"), ("seed", "each step"), ("noise", "two noises of a step")]}  # fmt: skip


def verdict(told: Case, one: str, other: str) -> str:
    """'From step 351 this run is apart from the baseline: 4.2 % higher at the end.'"""
    level = points(told["level"])
    if told["parts"] is None or not level:
        return f"{one[:1].upper()}{one[1:]} and {other} do not part beyond the noise."
    late = sorted(v for _, v in level[-max(len(level) // 10, 1) :])
    last = late[len(late) // 2]
    if told["unit"] == TIMES:
        size = f"{text_format.number(last)} times as high"
    else:
        size = f"{text_format.number(abs(last))} {told['unit']}".strip() + (" higher" if last > 0 else " lower")
    return f"From step {told['parts']} on {one} is apart from {other}: {size} at the end."


def _look(name: str, height: int, log: bool = False, marks: list[Case] | None = None) -> Look:
    return Look(name, height, log, COLUMNS, (), marks or [], 1, ROOM)


def _across(curves: list[Any]) -> Scale:
    steps = [p[0] for c in curves for p in c]
    return Scale(min(steps), max(max(steps), min(steps) + 1))


def _picture(case: Case, id: str, title: str, says: str, svg: Any, x: Scale, legend: list[tuple[str, str]]) -> Case:
    return {
        "id": id,
        "title": title,
        "says": says,
        "svg": svg,
        "axis": timeline_chart.axis(case, x, clock=False, count=5),
        "legend": legend,
    }
