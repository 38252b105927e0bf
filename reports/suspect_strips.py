"""The suspect samples as strips: what each token, pixel or field cost, beside ordinary samples; else one bar of loss a sample."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

from reports import replay_section, scales, text_format
from reports.labels import pct, tag

Case = dict[str, Any]
SHADES = 5  # steps from "costs nothing" to the darkest; the eye tells about so many apart
DARKEST = 0.9  # quantile of the suspects' losses from which on a part is as dark as it gets
BARS = 16  # samples of a ranking without strips


def of(case: Case) -> list[dict[str, Any]]:
    """For each culprit batch: ``step``, ``each``, ``says`` and ``groups`` of (heading, rows); a row: ``sample``, ``loss``, ``blamed``, ``strip``."""
    found = []
    for told in _dicts(replay_section.of(case).get("samples")):
        strips = told.get("strips")
        shown = _strips(strips) if isinstance(strips, dict) else _bars(told)
        if shown:
            found.append({"step": told.get("step"), **shown})
    return found


def _strips(strips: Case) -> Case | None:
    rows, beside = _rows(strips.get("rows")), _rows(strips.get("beside"))
    seen = sorted(v for r in rows if r.get("blamed") for p in r["parts"] if math.isfinite(v := scales.value(p)))
    if not seen:
        return None
    top = seen[int(DARKEST * (len(seen) - 1))] or 1.0
    each, per = str(strips.get("each")), scales.whole(strips.get("per"))
    cell = f"one {each}" if per <= 1 else f"the mean of {per} {each}s"
    says = f"A cell is {cell}, from the first to the last: no colour costs nothing, the strongest red {text_format.number(float(f'{top:.2g}'))} or more."
    blamed, kept = ([r for r in rows if bool(r.get("blamed")) is side] for side in (True, False))
    groups = [
        ("Left out, the effect is gone", blamed),
        ("Kept, without effect", kept),
        (f"Of an ordinary batch (step {strips.get('ordinary')})", beside),
    ]
    return {"says": says, "groups": [(head, [r | {"strip": _cells(r["parts"], top)} for r in found]) for head, found in groups if found]}


def _bars(told: Case) -> Case | None:
    rows = _dicts(told.get("ranking"))[:BARS]
    losses = [v for r in rows if math.isfinite(v := scales.value(r.get("loss")))]
    if not rows or not any(r.get("blamed") for r in rows):
        return None
    top = max([*losses, 0.0]) or 1.0
    blamed, kept = ([r for r in rows if bool(r.get("blamed")) is side] for side in (True, False))
    groups = [("Left out, the effect is gone", blamed), ("Kept, without effect", kept)]
    return {
        "says": "",
        "groups": [(head, [r | {"strip": _bar(scales.value(r.get("loss")) / top)} for r in found]) for head, found in groups if found],
    }


def _rows(raw: Any) -> list[Case]:
    return [r for r in _dicts(raw) if isinstance(r.get("parts"), list) and r["parts"]]


def _dicts(raw: Any) -> list[Case]:
    return [r for r in raw if isinstance(r, dict)] if isinstance(raw, list) else []


def _cells(parts: list[Any], top: float) -> Markup:
    """One row of cells in a stretching drawing; cells of one shade are one path, what is not counted stays empty."""
    by_shade: dict[str, list[str]] = {}
    for i, part in enumerate(parts):
        v = scales.value(part)
        shade = "" if part is None else "odd" if not math.isfinite(v) else f"s{min(round(SHADES * max(v, 0.0) / top), SHADES)}"
        if shade not in ("", "s0"):
            by_shade.setdefault(shade, []).append(f"M{i} 0h1v1h-1z")
    paths = Markup("").join(tag('<path class="{}" d="{}"/>', shade, "".join(d)) for shade, d in sorted(by_shade.items()))
    return tag(
        '<svg class="strip" width="100%" height="14" viewBox="0 0 {} 1" preserveAspectRatio="none" aria-hidden="true">{}</svg>',
        len(parts),
        paths,
    )


def _bar(share: float) -> Markup:
    bar = tag('<rect class="s4" width="{}" height="14"/>', pct(min(max(share, 0.0), 1.0))) if math.isfinite(share) else Markup("")
    return tag('<svg class="strip" width="100%" height="14" aria-hidden="true">{}</svg>', bar)
