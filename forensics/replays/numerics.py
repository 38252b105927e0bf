"""Whether precision or a formula makes it: the same steps one precision higher, or with every formula guarded."""

from __future__ import annotations

import math
from typing import Any

from forensics.replays.client import ReplayFailed
from forensics.replays.reproduce import Reproduction
from forensics.replays.request import Scene

LOW = ("fp16", "bf16")
MOST_FRAMES = 60  # rows of the table of modules
GREW = 4  # times its usual gradient norm


def precision_arms(scene: Scene, precision: str, until: int) -> dict[str, str]:
    """ "fp32" for a run in half precision, "fp64" for one in fp32; fp64 only where a value is not finite.

    A finite spike in fp32 is no rounding error by itself, and another precision would merely be another trajectory.
    """
    back = 8 if scene.effect.nonfinite else 16
    if precision in LOW:
        return {"fp32": _arm(scene, f"fp32 for {precision}", back, until, {"precision": "fp32"})}
    return {"fp64": _arm(scene, "fp64 for fp32", back, until, {"precision": "fp64"})} if scene.effect.nonfinite else {}


def guard_arm(scene: Scene, until: int) -> str:
    says = "what is made non-finite from finite numbers is made finite"
    return _arm(scene, "formulas guarded", 4, until, {"guard": True}, says)


def _arm(scene: Scene, name: str, back: int, until: int, changes: dict[str, Any], says: str = "") -> str:
    """From a kept state so many steps before the effect."""
    begin = scene.lab.nearest(max(scene.again.first - back, scene.again.trace.first))
    try:
        return scene.arms.along(name, begin, until, says=says, changes=changes)
    except ReplayFailed as e:  # a cast that the model does not allow is no reason to stop
        if e.kind not in ("adapter", "memory"):
            raise
        scene.arms.failed(name, e.sentence)
        return "undecided"


def look(scene: Scene, spare: list[int]) -> dict[str, Any]:
    """At the step of the first non-finite value: the operation that made it, and all modules beside a control batch."""
    lab, shift = scene.lab, scene.shift
    step = origin(scene.again)
    begin = lab.nearest(step)
    name = lab.states[begin]
    if begin != step:
        name = f"look {step}"
        lab.along(begin, step - 1, keep={str(step - begin): name})
    try:
        suspect = lab.worker.ask("frames", state=name, batch=step)
        control = lab.worker.ask("frames", state=name, batch=spare[0])
    except ReplayFailed:
        return {}
    lab.looks += 2
    beside = {(f["module"], f["what"]): f for f in control["frames"]}
    pairs = ((f, beside.get((f["module"], f["what"]), {})) for f in suspect["frames"])
    rows = [{**f, "control_absmin": c.get("absmin"), "control_absmax": c.get("absmax")} for f, c in pairs]
    bad = next((i for i, r in enumerate(rows) if r["nonfinite"]), len(rows))
    rows = rows[max(0, bad - MOST_FRAMES // 2) : bad + MOST_FRAMES // 2]
    return {"step": step + shift, "first": suspect["first"], "frames": rows, "batch": suspect["batch"], "gradients": suspect["gradients"],
            "control_batch": spare[0] + shift, "control_first": control["first"]}  # fmt: skip


def origin(again: Reproduction) -> int:
    """The first step with a non-finite loss or gradient norm from which the loss does not come back finite."""
    trace = again.trace
    step = again.first
    while step - 1 >= trace.first:
        norm = trace.norm[step - 1 - trace.first]
        if norm is None or abs(norm) < float("inf"):
            break
        step -= 1
    return step


def grew_first(layers: list[dict[str, float]], usual: int) -> str | None:
    """The layer whose gradient norm left its usual range first, None where none did or where several became non-finite at once.

    `layers`: gradient norm by parameter, step by step; the first `usual` steps say what is usual.
    """
    if len(layers) <= usual:
        return None
    for row in layers[usual:]:
        ratios = {}
        for name, value in row.items():
            before = sorted(r[name] for r in layers[:usual] if r.get(name) == r.get(name) and name in r)
            if before and before[len(before) // 2] > 0:
                ratios[name] = value / before[len(before) // 2] if value == value else math.inf
        if ratios and max(ratios.values()) > GREW:
            first = max(ratios, key=lambda k: ratios[k])
            return None if sum(r == math.inf for r in ratios.values()) > 1 else first
    return None
