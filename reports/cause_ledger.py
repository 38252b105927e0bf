"""The causes as ledgers: every clue a bar that starts where the last one ended, all on one axis of decibans."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from reports import scales, text_format
from reports.clues import SILENT, is_silent, said_once, weight
from reports.labels import pct, tag

LEAST, MOST = 0.01, 6  # probability and number of the causes that are shown one by one


def weighs(case: dict[str, Any]) -> dict[str, list[tuple[dict[str, Any], float]]]:
    """For each finding the causes that it speaks for or against, with the decibans: the likeliest four."""
    out: dict[str, dict[str, tuple[dict[str, Any], float]]] = {}
    for h in case["hypotheses"]:
        for c in h["clues"]:
            for i in dict.fromkeys(c["findings"]):
                known = out.setdefault(i, {})
                known[h["id"]] = (h, known.get(h["id"], (h, 0.0))[1] + weight(c))
    return {i: [pair for pair in known.values() if pair[1]][:4] for i, known in out.items()}


def causes(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Each cause with its ledger: one axis for all, every bar starting where the last one ended."""
    sums = [0.0]
    for h in case["hypotheses"]:
        total = 0.0
        for c in h["clues"]:
            total += weight(c)
            sums.append(total)
    sums += [s for h in case["hypotheses"] if (s := scales.value(h.get("score"))) == s]
    lo, hi = min(sums), max(sums)
    pad = max((hi - lo) * 0.06, 1.0)
    x = scales.Scale(lo - pad, hi + pad)
    marks = scales.ticks(x.lo, x.hi, 5)
    scale = Markup("").join(tag('<text class="wl" x="{}" y="13">{}</text>', pct(x(m)), text_format.decibans(m)) for m in marks)
    head = tag('<svg class="wf" width="100%" height="18" aria-hidden="true">{}</svg>', scale)
    out = []
    for rank, h in enumerate(case["hypotheses"]):
        at, rows = 0.0, []
        told = said_once([c for c in h["clues"] if not is_silent(c)])
        for i, c in enumerate(told):
            if i and c.get("part") == "replay" and told[i - 1].get("part") != "replay":
                rows.append({"subtotal": at, "bar": _bar(x, marks, None, 0.0, at)})
            start, at = at, at + weight(c)
            rows.append({"clue": c, "sum": at, "bar": _bar(x, marks, c, start, at, last=i + 1 == len(told))})
        score = scales.value(h.get("score"))
        score = at if score != score else score
        silent = list(dict.fromkeys(str(c["text"]).removeprefix(SILENT).rstrip(".") for c in h["clues"] if is_silent(c)))
        likely = rank == 0 or (scales.value(h.get("probability")) >= LEAST and rank < MOST)
        out.append(
            {
                "h": h,
                "rows": rows,
                "silent": silent,
                "score": score,
                "likely": likely,
                "bar": _bar(x, marks, None, 0.0, score),
                "head": head,
            }
        )
    return out


def _bar(x: scales.Scale, marks: list[float], clue: Any, start: float, end: float, last: bool = False) -> Markup:
    """A row of the ledger: a clue's bar from the sum before it to the sum after it; without a clue the sum itself."""
    out = [tag('<line class="wg" x1="{0}" x2="{0}" y1="0" y2="100%"/>', pct(x(m))) for m in marks]
    a, b, zero = pct(x(start)), pct(x(end)), pct(x(0.0))
    out.append(tag('<line class="wz" x1="{0}" x2="{0}" y1="0" y2="100%"/>', zero))
    if clue is None:
        out.append(tag('<line class="ws" x1="{}" x2="{}" y1="50%" y2="50%"/>', zero, b))
        out.append(tag('<circle class="wd" cx="{}" cy="50%" r="4.5"/>', b))
    else:
        kind = "for" if end >= start else "against"
        out.append(tag('<line class="wb {}" x1="{}" x2="{}" y1="50%" y2="50%"/>', kind, a, b))
        if not last:
            out.append(tag('<line class="wc" x1="{0}" x2="{0}" y1="50%" y2="100%"/>', b))
    return Markup('<svg class="wf" width="100%" height="100%" aria-hidden="true">{}</svg>').format(Markup("").join(out))
