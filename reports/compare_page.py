"""Two runs as one page: the sentence, the curves over each other, what differs, and what it cost. No script, no request."""

from __future__ import annotations

import textwrap
from typing import Any

from markupsafe import Markup

from reports import chart, curve_pictures, scales, schema, text_format, timeline_chart
from reports.html import environment, policy_hash, template

AXES = {"steps": "steps", "seconds": "seconds of training", "tokens": "tokens", "flops": "FLOPs"}
SHOWN = 40
SUSPECT = 10  # suspicion of a setting below which it is a name, a path, or excused
RECIPE = {"rate": "peak learning rate", "usual": "usual rate for such a model and optimizer", "warmup": "warmup steps", "attention": "has attention",
          "sgd": "plain SGD", "clip": "gradient clipping (0: off)"}  # fmt: skip


def render(document: dict[str, Any]) -> str:
    """The page of `forensics compare`, byte for byte the same for the same document."""
    style = template("report.css") + template("pictures.css") + template("compare.css")
    page = environment().get_template("compare.html")
    panels, axis = _panels(document)
    sure, rest = ([d for d in document["config"] if (d["suspicion"] >= SUSPECT) is wanted] for wanted in (True, False))
    return page.render(
        d=document,
        panels=panels,
        axis=axis,
        axes=AXES,
        shown=SHOWN,
        suspect=sure,
        excused=rest,
        recipe=RECIPE,
        style=Markup(style),
        style_hash=policy_hash(style),
    )


def _panels(document: dict[str, Any]) -> tuple[list[dict[str, Any]], Markup]:
    curves = [(c, scales.points(c["a"]), scales.points(c["b"])) for c in document["curves"]]
    steps = [p[0] for _, a, b in curves for p in (*a, *b)]
    if not steps:
        return [], Markup("")
    x = scales.Scale(min(steps), max(max(steps), min(steps) + 1))
    out: list[dict[str, Any]] = []
    for c, a, b in curves:
        if not a and not b:
            continue
        found = document["divergence"].get(c["metric"]) or {}
        at = found.get("level") if found.get("level") is not None else found.get("excursion")
        what = "part" if found.get("level") is not None else f"{found.get('excursion_by')} {found.get('excursion_way')}"
        marks = [{"step": at, "label": f"{what} at {at}", "kind": "event"}] if at is not None else []
        if not out:  # the loss
            marks += [{"step": s["step"], "label": f"{s['run']} spikes at {s['step']}", "kind": "event"} for s in document["spikes"][:12]]
        name = f"{text_format.metric(c['metric'])} of both runs over steps"
        drawn = [chart.Curve(a, "run"), chart.Curve(b, "eval")]
        svg = chart.panel(drawn, x, chart.Look(name, 130 if out else 220, c["scale"] == "log", marks=marks, rows=2))
        out.append({"metric": c["metric"], "unit": c["unit"], "log": c["scale"] == "log", "svg": svg, "beneath": _beneath(c, x)})
    return out, timeline_chart.axis({"timeline": {"clock": []}, "run": {"attempts": []}}, x, clock=False)


def _beneath(curve: dict[str, Any], x: scales.Scale) -> dict[str, Any] | None:
    """The difference of two losses or evaluations; other curves do not follow a level, so that theirs says little."""
    apart = curve.get("difference")
    if not apart or not str(curve["metric"]).startswith(("loss.", "acc.")):
        return None
    return curve_pictures.difference(schema.shaped(apart, schema.DIFFERENCE), x, ("B", "A"))


def terminal(document: dict[str, Any], *, width: int = 100) -> str:
    """The answer, the differences and the learning in some lines."""
    lines = textwrap.wrap(text_format.visible(document["answer"]), width)
    for w in document["warnings"]:
        lines += textwrap.wrap(f"Beware: {text_format.visible(w)}", width, subsequent_indent="  ")
    suspect = [d for d in document["config"] if d["suspicion"] >= SUSPECT][:8]
    lines += ["", "Settings that differ, the most suspect first:"] if suspect else ["", "No setting that was logged differs."]
    lines += [text_format.visible(f"  {d['key']}: {text_format.number(d['a'])} -> {text_format.number(d['b'])}")[:width] for d in suspect]
    for f in document.get("source", {}).get("files", [])[:4]:
        names = f"differs in {', '.join(f['names'][:4])}" if f["in"] == "both" else f"lies with {f['in']} alone"
        lines.append(text_format.visible(f"  source: {f['path']} {names}")[:width])
    order = document["data_order"]
    lines += ["", f"Data order: {order['order']} ({order['why']})"]
    for entry in document["learning"]:
        if not entry["cannot_tell"]:
            better = f"{entry['better']} is better" if entry["better"] else "no difference beyond the noise"
            at = f"{text_format.number(float(entry['at']))} {AXES[entry['axis']]}"
            lines.append(f"  at {at}: {text_format.number(entry['a'])} and {text_format.number(entry['b'])}, {better}")
    return "\n".join(text_format.visible(line) for line in lines)
