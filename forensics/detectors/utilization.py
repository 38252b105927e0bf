"""Utilization

What it sees
    Accelerators that wait: a low load, a low share of the peak arithmetic (MFU), steps that wait for data, clocks that fall
    while the device is hot. Whether that was so throughout or from some time on.

How it decides
    Medians over the run: load of the GPUs below 50 %, MFU below 10 % (as logged, else 6 N tokens/s over the peak of the
    device that config names; the fast paths that config turns off are named beside it), 30 % of a step or more spent on data, a fifth of the tokens padding. Each is looked at in halves around the best split, too: a
    load that falls to less than 70 %, or a share of waiting that doubles, is a change. Throttling: at 80 degrees and more
    the clock lies 10 % below what it is when cooler, for a tenth of the time. A slow run trains as well as a fast one, so
    all of this is for information; what changes in time is weighed with the throughput.

Cannot tell
    Where neither load, MFU, waiting times, padding nor clocks were logged, and MFU cannot be worked out.

Folklore
    Load is the share of time in which some kernel ran, not how well it ran: 100 % and an MFU of 10 % go together. PaLM
    reached an MFU of 46 %, good dense runs 40 to 60 (arXiv:2204.02311).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Evidence, Finding
from forensics.errors import CannotTell
from forensics.run import fast_paths, peak_flops, rank_shapes, settings
from forensics.run.inputs import surviving
from forensics.run.robust import median
from forensics.run.series import Floats, Ints, Series, series
from forensics.run.system_metrics import Clocked, clocked
from parsers.tables import Run

NEEDS: list[str] = []
INPUTS = ["gpu.util"]
LOW_LOAD, WAITING = 50.0, 0.3  # unit: half of the time idle, a third of it waiting; for information only (docs/thresholds.md)
PADDED = 0.2  # unit: a fifth of the work, as packing saves it; for information only
BY_WAITS = 0.5  # unit: a loader that slows down is most of what the steps lose
LOW_MFU = 0.10  # paper: good dense runs reach 40 to 60 % (PaLM, arXiv:2204.02311); a quarter of the worst of these
FALLS, DOUBLES, LEAST = 0.7, 2.0, 20  # unit: a third less, twice as much; a median of 20 is off by 0.28 sigma. For information only
HOT, COOLER, HOT_SHARE = 80.0, 0.9, 0.1  # unit: degrees; NVIDIA's data-centre boards slow down from 83 to 90 on. For information only
SMALLEST_EFFECT = f"a usual load below {LOW_LOAD:.0f} %, a usual MFU below {LOW_MFU:.0%}, {WAITING:.0%} of the usual step spent on data"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """How well the devices were used; in % for a load, in MHz for clocks, else as a share."""

    what: str  # load, idle_device, waiting, mfu, padding, heat
    changed: bool  # in the course of the run
    before: float | None = None
    after: float | None = None
    median: float | None = None  # where it did not change


def detect(run: Run) -> Iterator[Finding]:
    judged = False
    for judge in (_load, _waiting, _mfu, _padding, _throttled):
        try:
            yield from judge(run)
            judged = True
        except CannotTell:
            continue
    if not judged:
        raise CannotTell("neither load of the GPUs, MFU, waiting times nor clocks were logged")


def _load(run: Run) -> Iterator[Finding]:
    devices = [c for c in clocked(run, "gpu.util") if len(c.value) >= LEAST]
    if not devices:
        raise CannotTell("no load")
    usual = [median(_trained(run, c)) for c in devices]
    low, change = median(usual), _change(_trained(run, devices[0]))
    fallen = change is not None and change[1] <= FALLS * change[0] and change[0] >= LOW_LOAD
    idle = [c.tag for c, u in zip(devices, usual, strict=True) if u < 20 <= 0.3 * max(usual)]
    rows = [[c.tag, c.rank, float(f"{np.median(c.value):.3g}")] for c in devices[:16]]
    shown = evidence.table("load by device, %", ["tag", "rank", "median"], rows)
    if fallen and change is not None:
        title = f"The load of the GPUs falls from {change[0]:.0f} % to {change[1]:.0f} % in the course of the run"
        yield _finding(run, "load", title, shown, Facts("load", True, before=change[0], after=change[1]))
    elif low < LOW_LOAD:
        title = f"The GPUs are busy {low:.0f} % of the time"
        yield _finding(run, "load", title, shown, Facts("load", False, median=low))
    elif idle:
        title = f"{len(idle)} of {len(devices)} GPUs hardly work ({', '.join(idle[:3])}) while others do"
        yield _finding(run, "load", title, shown, Facts("idle_device", False, median=low))


def _waiting(run: Run) -> Iterator[Finding]:
    s, share = waiting(run)
    usual, change = median(share), _change(share)
    risen = change is not None and change[1] >= max(DOUBLES * change[0], 0.2)
    if not risen and usual < WAITING:
        return
    rows = surviving(s)
    first, last = int(s.step[rows[0]]), int(s.step[rows[-1]])
    shown = evidence.window(s, first, last, title=s.tag, where=s.place(run, rows[0]), margin=0)
    if risen and change is not None:
        title = f"The share of a step spent waiting for data rises from {change[0]:.0%} to {change[1]:.0%}"
        facts = Facts("waiting", True, before=change[0], after=change[1])
    else:
        title, facts = f"{usual:.0%} of each step is spent waiting for data", Facts("waiting", False, median=usual)
    yield _finding(run, "waiting", title, shown, facts)


def waiting(run: Run) -> tuple[Series, Floats]:
    """The series that tells, and the share of each step that was spent on data. Raises CannotTell."""
    s = series(run, "time.data_frac")
    if s is not None and len(s) >= LEAST:
        x = s.value[s.usable]
        return s, x / 100 if s.unit == "%" or x.max(initial=0) > 1 else x
    s, _, data, total = waits(run)
    return s, np.minimum(data / total, 1.0)


def waits(run: Run) -> tuple[Series, Ints, Floats, Floats]:
    """The series of the wait for data, the steps at which both are known, seconds of waiting and of the whole step. Raises CannotTell."""
    s, whole = series(run, "time.data"), series(run, "time.step")
    if s is None or whole is None:
        raise CannotTell("no waiting times")
    step, a, b = np.intersect1d(s.step[s.alive], whole.step[whole.alive], return_indices=True)
    data, total = s.value[s.alive][a], whole.value[whole.alive][b]
    ok = np.isfinite(data) & np.isfinite(total) & (total > 0) & (data >= 0)
    if ok.sum() < LEAST:
        raise CannotTell("too few waiting times")
    data, total = data[ok] * s.seconds, total[ok] * whole.seconds
    apart = median(data) > median(total)  # the time of a step was taken without that of its data
    return s, step[ok], data, data + total if apart else total


def starves(run: Run, since: int) -> bool:
    """Is most of what a step takes longer since then a wait for data? No neighbour is to blame for that."""
    try:
        _, step, wait, total = waits(run)
    except CannotTell:
        return False
    late = step >= since
    if not 0 < late.sum() < len(late):
        return False
    longer, waited = (median(x[late]) - median(x[~late]) for x in (total, wait))
    return waited >= BY_WAITS * longer > 0


def mfu(run: Run) -> tuple[float, str]:
    """The share of the peak arithmetic that was used, and how that is known. Raises CannotTell."""
    s = series(run, "mfu")
    values = s.value[s.usable & (s.value > 0)] if s is not None else np.array([])
    if s is None or len(values) < LEAST:
        return _worked_out(run)
    percent = s.unit == "%" or values.max() > 1.0
    return median(values) / (100 if percent else 1), f"logged as {s.tag}"


def _mfu(run: Run) -> Iterator[Finding]:
    usual, how = mfu(run)
    if usual < LOW_MFU:
        off = [f"{s.key} is {s.value} ({s.where}): {words}" for s, words in fast_paths.off(run)]
        shown = evidence.text("model FLOP utilization", [f"{usual:.1%}, {how}", *off])
        more = f", and config leaves {len(off)} fast path{'s' * (len(off) > 1)} off" if off else ""
        title = f"The run uses {usual:.1%} of the peak arithmetic of its devices{more}"
        yield _finding(run, "mfu", title, shown, Facts("mfu", False, median=usual))


def _padding(run: Run) -> Iterator[Finding]:
    s = series(run, "pad.share")
    values = s.value[s.usable] if s is not None else np.array([])
    if s is None or len(values) < LEAST:
        raise CannotTell("no share of padding")
    usual = median(values) / (100 if s.unit == "%" or values.max() > 1.0 else 1)
    if usual >= PADDED:
        shown = evidence.text("padding", [f"{usual:.0%}, logged as {s.tag}: packed samples, or batches of like length, would need less"])
        title = f"{usual:.0%} of the tokens of a usual batch are padding"
        yield _finding(run, "padding", title, shown, Facts("padding", False, median=usual))


def _worked_out(run: Run) -> tuple[float, str]:
    """MFU by the 6 N rule. Raises CannotTell."""
    whole, each = series(run, "tput.tokens"), series(run, "tput.tokens_dev")
    device, n = peak_flops.peak(run), peak_flops.parameters(run)
    devices = settings.number(run, "world_size")
    s = each if each is not None else whole
    if s is None or device is None or n is None or (each is None and not devices):
        raise CannotTell("MFU was not logged; tokens a second, parameters and the name of the device are needed to work it out")
    speed = median(s.value[s.usable])
    share = peak_flops.mfu(speed, n, 1 if each is not None else devices or 1, device[1])
    return share, f"6 x {n:.3g} parameters x {speed:.4g} tokens/s over {device[1] / 1e12:.0f} TFLOP/s of {device[0]}"


def _throttled(run: Run) -> Iterator[Finding]:
    clocks, heats = {_device(c): c for c in clocked(run, "gpu.clock")}, {_device(c): c for c in clocked(run, "gpu.temp")}
    pairs = [(clocks[d], heats[d]) for d in clocks if d in heats and min(len(clocks[d].value), len(heats[d].value)) >= LEAST]
    if not pairs:
        raise CannotTell("no clocks and temperatures")
    for clock, heat in pairs:
        near = np.clip(np.searchsorted(heat.time, clock.time), 0, len(heat.time) - 1)
        hot = heat.value[near] >= HOT
        if not HOT_SHARE <= hot.mean() <= 1 - HOT_SHARE:
            continue
        cool, warm = median(clock.value[~hot]), median(clock.value[hot])
        if warm <= COOLER * cool:
            rows = [["below 80 °C", cool, float((~hot).mean())], ["80 °C and more", warm, float(hot.mean())]]
            shown = evidence.table(f"{clock.tag} by {heat.tag}", ["temperature", "clock", "share of the time"], rows)
            title = f"The clock of {clock.tag} falls by {1 - warm / cool:.0%} when the device is at {HOT:.0f} °C and more: it throttles"
            yield _finding(run, "heat", title, shown, Facts("heat", True, before=cool, after=warm))
            return


def _device(c: Clocked) -> tuple[str, int | None]:
    m = re.search(r"\d+", c.tag)
    return (m[0] if m else "", c.rank)


def _trained(run: Run, c: Clocked) -> Floats:
    """The values while steps were done, where the clocks say when that was."""
    s = series(run, "loss.train")
    if s is None or not np.isfinite(s.time).any():
        return c.value
    inside = c.value[(c.time >= np.nanmin(s.time)) & (c.time <= np.nanmax(s.time))]
    return inside if len(inside) >= LEAST else c.value


def _change(x: Floats) -> tuple[float, float] | None:
    """Medians before and after the best split."""
    if len(x) < 2 * LEAST:
        return None
    row = rank_shapes.split(x)
    return median(x[:row]), median(x[row:])


def _finding(run: Run, what: str, title: str, shown: Evidence, facts: Facts) -> Finding[Facts]:
    steps = [s for a in run.attempts for s in a["steps"]]
    return evidence.found(facts, title, (min(steps, default=None), max(steps, default=None)), "info", shown, key=what)
