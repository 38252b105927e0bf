"""The replay of a case for the page and Markdown: its experiments with small charts, what was found, and how to go on."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

from reports import scales, text_format
from reports.labels import pct, tag

Case = dict[str, Any]
HIT = ("spike", "nan")
TITLES = {
    "data": "the batch makes it, whatever the state",
    "state x data": "this batch makes it, in this state",
    "transient hardware": "it does not come back, so a device erred once",
    "optimizer-hyperparameter": "rate or optimizer make it",
    "numerics": "the precision makes it",
    "deterministic code": "it comes back whatever is changed",
    "cannot reproduce": "the run could not be reproduced",
    "nothing to explain": "nothing to explain",
    "undecided": "undecided",
}
WIDTH, HEIGHT = 1000, 60  # of a small chart, in its own units across and in pixels down
MOST = 32  # rows of a table
OPEN = 6  # experiments that are shown at once
OUTCOMES = {"spike": "spike", "nan": "NaN", "no spike": "no spike"}


def of(case: Case) -> Case:
    """The replay of a case; empty where there is none."""
    replay = case.get("replay")
    return replay if isinstance(replay, dict) else {}


def title(case: Case) -> str:
    """What the replay came to, in a few words."""
    word = str(of(case).get("verdict", ""))
    return TITLES.get(word, word or "no verdict")


PROOF = ("data", "state x data", "transient hardware", "optimizer-hyperparameter", "numerics", "deterministic code")


def logs_alone(case: Case) -> float | None:
    """The probability of the leading cause by the clues of the logs; None where a replay proved nothing of it."""
    weighed = [h for h in case["hypotheses"] if not h.get("ruled_out")]
    if of(case).get("verdict") not in PROOF or not weighed or _sum(weighed[0], replayed=True) <= 0:
        return None
    shares = [10 ** (_sum(h, replayed=False) / 10) for h in weighed]
    return shares[0] / sum(shares)


def _sum(h: Case, *, replayed: bool) -> float:
    """Decibans of a cause by its clues of one side."""
    weights = (scales.value(c.get("weight")) for c in h["clues"] if (c.get("part") == "replay") is replayed)
    return min(sum(w for w in weights if math.isfinite(w)), 300.0)  # beyond, the powers of ten are infinite


def arms(case: Case) -> list[dict[str, Any]]:
    """Each experiment with its losses as a small chart, all on one scale of loss; a bar of its peak where it has no curve.

    Those that run over the steps of the first one, the run as logged, share its axis of steps, too. The small chart of one that was
    run is ``bar``, with ``low`` and ``high`` of the losses and ``first`` and ``last`` step.
    """
    rows = [a for a in _list(of(case).get("arms")) if isinstance(a, dict)]
    curves = [scales.points(a.get("curve")) for a in rows]
    peaks = [p for a in rows if math.isfinite(p := scales.value(a.get("peak"))) and p >= 0]
    seen = [v for c in curves for _, v in c]
    lowest, highest = min((v for v in seen if v > 0), default=1.0), max((v for v in seen if math.isfinite(v)), default=1.0)
    down = scales.scale(seen, log=bool(seen) and lowest * 30 < highest)
    bar = scales.Scale(0.0, max(peaks, default=1.0) or 1.0)
    first, last = (curves[0][0][0], curves[0][-1][0]) if curves and curves[0] else (math.inf, -math.inf)
    beside = [bool(c) and not a.get("apart") and c[0][0] <= last and c[-1][0] >= first for a, c in zip(rows, curves, strict=True)]
    steps = [s for c, together in zip(curves, beside, strict=True) if together for s, _ in c]
    shared = scales.Scale(min(steps), max(*steps, min(steps) + 1)) if steps else None
    out = []
    for a, curve, together in zip(rows, curves, beside, strict=True):
        hit, many = a.get("outcome") in HIT, len(curve) > 1
        across = (shared if together else None) or (scales.Scale(curve[0][0], max(curve[-1][0], curve[0][0] + 1)) if many else None)
        drawn = _small(curve, across, down, hit) if many and across else _bar(scales.value(a.get("peak")), bar, hit)
        ends = (
            {"first": int(across.lo), "last": int(across.hi), "low": float(f"{down.lo:.3g}"), "high": float(f"{down.hi:.3g}")}
            if many and across
            else {}
        )
        out.append(
            {"arm": a, "hit": hit, "bar": drawn, "says": OUTCOMES.get(str(a.get("outcome")), a.get("outcome")), "beside": together, **ends}
        )
    return out


def telling(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(the experiments that show the most, the others), in their order: the run as logged; of those without the effect the longest, and
    of equally long ones the later, which ask more precisely; of those with it one over the same steps, and one at another state."""
    if len(rows) <= OPEN:
        return rows, []
    gone = sorted((i for i, r in enumerate(rows) if i and not r["hit"]), key=lambda i: (scales.value(rows[i]["arm"].get("steps")), i))[-3:]
    there = [next((i for i, r in enumerate(rows) if i and r["hit"] and r.get("beside") is same), 0) for same in (True, False)]
    chosen = [0, *there, *gone]
    chosen += [i for i in range(len(rows)) if i not in chosen][: OPEN - len(set(chosen))]
    return [r for i, r in enumerate(rows) if i in chosen], [r for i, r in enumerate(rows) if i not in chosen]


def named(arm: dict[str, Any]) -> str:
    """An experiment with what is said of it, in one cell."""
    return f"{arm.get('name')}: {arm['says']}" if arm.get("says") else str(arm.get("name"))


def _bar(peak: float, across: scales.Scale, hit: bool) -> Markup:
    line = tag('<line class="{}" x1="0" x2="{}" y1="6" y2="6"/>', "hit" if hit else "none", pct(across(peak))) if peak == peak else ""
    return tag('<svg class="arm" width="100%" height="12" aria-hidden="true">{}</svg>', line)


def _small(curve: list[scales.Point], x: scales.Scale, down: scales.Scale, hit: bool) -> Markup:
    """The loss from step to step, with a mark where it is not finite."""
    spots = [(round(x(s) * WIDTH), round(2 + (1 - down(v)) * (HEIGHT - 4), 1)) for s, v in curve if math.isfinite(v)]
    parts = [tag('<polyline points="{}"/>', " ".join(f"{a},{b}" for a, b in spots))]
    parts += [tag('<line x1="{0}" x2="{0}" y1="0" y2="{1}"/>', round(x(s) * WIDTH), HEIGHT) for s, v in curve if not math.isfinite(v)][:40]
    return tag(
        '<svg class="armcurve {}" width="100%" height="{}" viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true">{}</svg>',
        "hit" if hit else "none", HEIGHT, WIDTH, HEIGHT, Markup("").join(parts),
    )  # fmt: skip


def said(case: Case) -> list[str]:
    """What the replay found, in sentences, the verdict's reason first."""
    r = of(case)
    out = [str(r[k]) for k in ("why", "trouble", "budget_note") if r.get(k)]
    first = r.get("nonfinite")
    if isinstance(first, dict) and isinstance(first.get("first"), dict):
        f = first["first"]
        where = f" in `{f['module']}`" if f.get("module") else " outside the model's modules, as in the loss,"
        place = f"`{f.get('operation')}`{where}, {f.get('phase')}, at step {first.get('step')}"
        out.append(f"The first value that is not finite comes from {place}; what went in was finite.")
    if r.get("grew_first"):
        out.append(f"The gradient of `{r['grew_first']}` grew first.")
    leaks = r.get("leaks")
    out += _seen(leaks) if isinstance(leaks, dict) else []
    left = [str(x) for x in _list(r.get("not_tried"))]
    if left:
        out.append(f"Not tried for want of steps: {', '.join(left)}; a larger `--budget` would.")
    return out


def conditions(case: Case) -> list[str]:
    """Under what the experiments were made: what was loaded, how the replay meets the log, what they cost."""
    r, told = of(case), said(case)
    checked = r.get("check")
    out = [str(x) for x in _list(checked.get("lines"))] if isinstance(checked, dict) else []
    out = [x for x in out if x not in told]
    start = r.get("from")
    if isinstance(start, dict):
        place = f"`{start['checkpoint']}`" if start.get("checkpoint") else "the model as built"
        out.append(f"Begun from {place} at step {start.get('step')} ({', '.join(map(str, _list(start.get('parts'))))}).")
    beside = [str(f) for f in _list(r.get("beside"))]
    if beside:
        out.append(f"The adapter imported {text_format.joined([f'`{f}`' for f in beside], 20)} from its own folder.")
    if r.get("agreed") is not None:
        parted = f", then parts from it at step {r.get('parts')}, in the {text_format.metric(str(r.get('parts_in')))}"
        end = parted if r.get("parts") is not None else ""
        out.append(f"The replay agrees with {text_format.number(r['agreed'])} logged values{end}.")
    if r.get("rounding_reach") is not None:
        out.append(f"A change of the weights by one rounding moves the loss by {text_format.number(r['rounding_reach'])} at most.")
    if r.get("bound") is not None:
        done, bound, window = (text_format.number(r.get(k)) for k in ("steps_replayed", "bound", "window"))
        out.append(f"{done} steps of training were run again; one culprit should take at most {bound} for a window of {window}.")
    return out


def _seen(leaks: Case) -> list[str]:
    """What outputs depend on that a model may not see; rounding is not counted."""
    change, gradient = scales.value(leaks.get("future_change")), scales.value(leaks.get("future_gradient"))
    out = []
    if change > 1e-5 and gradient > 1e-8:
        out.append("Outputs depend on later positions: right for an encoder, a leak in a model that is to predict what comes next.")
    if scales.value(leaks.get("other_samples_gradient")) > 1e-8:
        out.append("The output of a sample depends on the other samples of its batch, in evaluation mode, too.")
    if scales.value(leaks.get("padding_change")) > 1e-5:
        out.append("Masked positions change the outputs of the others: the mask is not applied everywhere.")
    return out


def tables(case: Case) -> list[dict[str, Any]]:
    """{"title", "columns", "rows"}: the skip list, the ranking of samples, and the modules before a non-finite value."""
    r, out = of(case), []
    skip = [s for s in _list(r.get("skip")) if isinstance(s, dict)]
    if skip:
        rows = [[s.get("step"), ", ".join(map(str, _list(s.get("samples")))) or "the whole batch"] for s in skip]
        out.append({"title": "Skip list for the next attempt", "columns": ["step", "samples"], "rows": rows})
    for s in [s for s in _list(r.get("samples")) if isinstance(s, dict)]:
        ranking = [x for x in _list(s.get("ranking")) if isinstance(x, dict)][:MOST]
        rows = [[str(x.get("sample")), "blamed" if x.get("blamed") else "", x.get("loss"), x.get("gradient")] for x in ranking]
        title = f"Samples of step {s.get('step')}, {s.get('how')}"
        out.append({"title": title, "columns": ["sample", "", "loss", "gradient norm"], "rows": rows})
    seen = r.get("nonfinite")
    seen = seen if isinstance(seen, dict) else {}
    frames = [f for f in _list(seen.get("frames")) if isinstance(f, dict)]
    if frames:
        keys = ("module", "what", "absmin", "absmax", "nonfinite", "control_absmin", "control_absmax")
        head = ["module", "of", "smallest", "largest", "not finite", "smallest, other batch", "largest, other batch"]
        title = f"Modules at step {seen.get('step')}, beside batch {seen.get('control_batch')}"
        out.append({"title": title, "columns": head, "rows": [[f.get(k) for k in keys] for f in frames]})
    return out


def _list(x: Any) -> list[Any]:
    return x if isinstance(x, list) else []
