"""`forensics checkpoint` in the terminal: what is in it, what is broken, what changed, as plain lines."""

from __future__ import annotations

import math
from typing import Any

from reports import text_format

MOST = 40  # tensors shown; the JSON has them all


def render(document: dict[str, Any], *, width: int = 100) -> str:
    """The document of `checkpoint --json` as text."""
    d = document
    step = f", step {d['step']}" if d["step"] is not None else ""
    whole = {True: "complete", False: "INCOMPLETE", None: "length unknown"}[d["complete"]]
    count = sum(math.prod(t["shape"]) for t in d["tensors"])
    lines = [f"from {d['path']} to {d['path2']}"] if "path2" in d else []
    lines += [f"{d['path']}: {d['format']}, {d['kind']}{step}, {text_format.bytes_(d['bytes'])}, {whole}"]
    lines.append(f"{len(d['tensors'])} tensors, {count:,} values")
    lines += ["", "Findings"] if d["findings"] else ["", "Nothing broken was found in what could be read."]
    for f in d["findings"]:
        lines.append(f"  {f['severity']:<8}  {f['title']}")
        if len(f["tensors"]) > 1:
            lines.append(text_format.cut(f"            {', '.join(f['tensors'])}", width))
    for what, key in (("Not followed, not run", "refused"), ("Not read", "gaps")):
        if d[key]:
            lines += ["", what, *(text_format.cut(f"  {r['at']}: {r['what']}", width) for r in d[key][:20])]
            if len(d[key]) > 20:
                lines.append(f"  and {len(d[key]) - 20} more")
    if d["tensors"]:
        lines += ["", *table(d["tensors"], width)]
    if d["changed"] is not None:
        lines += ["", *changes(d["changed"], width)]
    return "\n".join(text_format.visible(line).replace("\n", "\\n") for line in lines)


def table(tensors: list[dict[str, Any]], width: int) -> list[str]:
    """One line a tensor; the sick ones first where not all fit."""
    shown = tensors
    if len(tensors) > MOST:
        order = sorted(range(len(tensors)), key=lambda i: (not tensors[i]["nonfinite"], tensors[i]["role"] == "other", i))
        shown = [tensors[i] for i in sorted(order[:MOST])]
    wide = max(min(max(len(t["name"]) for t in shown), max(width - 75, 20)), 6)
    head = f"{'tensor':<{wide}}  {'role':<10}  {'type':<9}  {'shape':<14}  {'norm':>9}  {'largest':>9}  {'bad':>5}"
    lines = [head, "-" * len(head)]
    for t in shown:
        shape = "x".join(str(n) for n in t["shape"]) or "number"
        bad = "" if t["nonfinite"] is None else str(t["nonfinite"])
        row = f"{text_format.cut(t['name'], wide, left=True):<{wide}}  {t['role']:<10}  {text_format.cut(t['dtype'], 9):<9}  {text_format.cut(shape, 14):<14}"
        lines.append(f"{row}  {number(t['norm']):>9}  {number(t['absmax']):>9}  {bad:>5}")
    if len(tensors) > len(shown):
        lines.append(f"and {len(tensors) - len(shown)} more; --json has them all")
    return lines


def changes(changed: list[dict[str, Any]], width: int) -> list[str]:
    """What moved, the farthest first; what did not move, counted."""
    still = [c for c in changed if c["equal"]]
    moved = sorted((c for c in changed if c["equal"] is False), key=lambda c: -value(c["relative"]))
    lines = [
        f"Changed: {text_format.plural(len(moved), 'tensor')}; bit for bit the same: {len(still)}; not compared: {len(changed) - len(moved) - len(still)}"
    ]
    wide = max(min(max((len(c["name"]) for c in moved[:MOST]), default=6), width - 40), 6)
    lines += [
        f"  {text_format.cut(c['name'], wide, left=True):<{wide}}  moved by {number(c['update_norm']):>9}, {number(c['relative']):>9} of its norm"
        for c in moved[:MOST]
    ]
    if len(moved) > MOST:
        lines.append(f"  and {len(moved) - MOST} more; --json has them all")
    return lines


def value(x: Any) -> float:
    return float(x) if isinstance(x, (int, float)) and x == x else -1.0


def number(x: Any) -> str:
    return "" if x is None else x if isinstance(x, str) else f"{x:.4g}"
