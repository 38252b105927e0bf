"""How fast the run went: its steps, its pauses, what the devices did meanwhile."""

from __future__ import annotations

import numpy as np

from forensics.detectors import rank_disagreement, stall, throughput, utilization
from forensics.errors import CannotTell
from forensics.findings import GRAVE
from forensics.run import pace, rank_shapes, ranks, settings
from forensics.run.robust import median
from forensics.run.series import Floats, series
from forensics.run.silence import SILENCE_SECONDS
from forensics.run.system_metrics import clocked
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

EFFECTS = {"one_rank_waits_for_data": "ranks"}  # symptoms of their own, for which there is no detector

_AGAIN = 2  # pauses: one may be anything, the second makes it a habit of the run

KINDS = {  # what changed with the speed: in words, and what to do first
    "waiting": (
        "the device waits for data",
        "More loader workers, prefetching, and data on a local disk; look at what else reads from that storage.",
    ),
    "heat": (
        "the device throttles in the heat",
        "Look at fans, inlet temperature and power cap of that node, and leave it out until then.",
    ),
    "load": ("the load of the GPUs falls", ""),
}


def steps_slower(s: Symptoms) -> Sign:
    """From some step on the run goes at less than 80 % of its speed, for good."""
    found = s.of(throughput.Facts)
    if found:
        facts, first, last = found[0].facts, found[0].first_step, found[0].last_step
        return seen(f"{found[0].title}.", found, first=first, last=last, ratio=facts.ratio, share=f"{facts.ratio:.0%}")
    measured = _halves_of_run(s)
    if measured.state == "seen" and measured.numbers["ratio"] < throughput.SLOWER:
        return cannot_tell(f"the speed scatters too widely to say where it changed. {measured.text}")
    return measured if measured.state != "seen" else absent(measured.text, where=measured.where)


def long_pauses(s: Symptoms) -> Sign:
    """Two silences or more, with steps after each, far longer than evaluations and saves take."""
    found = [f for f in s.of(stall.Facts) if not f.facts.at_end]
    if len(found) >= _AGAIN:
        longest = max(f.facts.seconds or 0.0 for f in found) / 60
        text = f"{len(found)} long silences lie between steps; the longest lasts {longest:.0f} minutes, after step {found[0].facts.step} the first."
        return seen(text, found, first=found[0].first_step, last=found[-1].last_step, count=len(found), minutes=round(longest))
    if found:
        return absent(f"One long silence alone: {found[0].title}.", found)
    rows = next((x for name in ("loss.train", "lr", "grad.norm") if (x := series(s.run, name)) is not None), None)
    waits = pace.pauses(rows).seconds if rows is not None else np.zeros(0)
    waits = waits[np.isfinite(waits)]
    if len(waits) < 10:
        return cannot_tell("the steps have no clock, so pauses between them were not measured.")
    longest = float(waits.max())
    short = "shorter than" if longest < SILENCE_SECONDS else "no more than an evaluation, a save or many steps explain, beyond"
    return absent(f"The longest pause between logged steps is {longest:.3g} s, {short} {SILENCE_SECONDS:.0f} s.")


def waits_for_data_grew(s: Symptoms) -> Sign:
    """The share of a step spent waiting for data at least doubled in the course of the run."""
    found = [f for f in s.of(utilization.Facts) if f.facts.what == "waiting" and f.facts.changed]
    if found:
        return _changed(s, "waiting")
    try:
        metric, share = utilization.waiting(s.run)
    except CannotTell:
        return cannot_tell("the time spent waiting for data was not logged.")
    if not len(share):
        return cannot_tell("the time spent waiting for data was not logged as a finite number.")
    first, second = _halves(share)
    text = f"Waiting for data took {first:.1%} of a step in the first half of the run and {second:.1%} in the second ({metric.tag})."
    return absent(text, where=metric.place(s.run, -1))


def utilization_fell(s: Symptoms) -> Sign:
    """The load of the GPUs falls to less than 70 % of what it was in the course of the run."""
    if any(f.facts.what == "load" and f.facts.changed for f in s.of(utilization.Facts)):
        return _changed(s, "load")
    devices = [c.value for c in clocked(s.run, "gpu.util") if len(c.value) >= utilization.LEAST]
    if not devices:
        return cannot_tell("the load of the GPUs was not logged.")
    first, second = _halves(devices[0])
    return absent(f"The load of the GPUs was {first:.0f} % in the first half of the run and {second:.0f} % in the second.")


def rank_straggles(s: Symptoms) -> Sign:
    """One rank takes at least a fifth longer for its steps than the others."""
    found = [f for f in s.of(rank_disagreement.Apart, severity=GRAVE) if f.facts.pattern == "straggler"]
    if found:
        facts = found[0].facts
        kind = f"rank {facts.rank} is slower than the others" if facts.rank is not None else ""
        return seen(f"{found[0].title}.", found, first=facts.step, last=found[0].last_step, kind=kind)
    m = ranks.matrix(s.run, "time.step")
    if m is None:
        return _of_one_rank(s, "time.step", "the time of its steps")
    if len(m.step) < rank_shapes.LEAST:
        return cannot_tell(f"the ranks share only {len(m.step)} steps whose time was logged.")
    usual = np.array([median(x[np.isfinite(x)]) if np.isfinite(x).any() else np.nan for x in m.value.T])
    if not (usual > 0).all():
        return cannot_tell("the time of a step is not a positive number on every rank.")
    return absent(f"The median time of a step differs by {usual.max() / usual.min() - 1:.1%} between {len(m.ranks)} ranks.")


def one_rank_waits_for_data(s: Symptoms) -> Sign:
    """One rank waits for data for 30 % of a step or more, twice as long as any other."""
    found = [f for f in s.of(rank_disagreement.Apart) if f.facts.metric == "time.data"]
    if found:
        facts = found[0].facts
        kind = f"rank {facts.rank} waits for its data" if facts.rank is not None else ""
        return seen(f"{found[0].title}.", found, first=facts.step, last=found[0].last_step, kind=kind, rank=facts.rank)
    m, whole = ranks.matrix(s.run, "time.data"), ranks.matrix(s.run, "time.step")
    if m is None or whole is None:
        return _of_one_rank(s, "time.data", "the time spent waiting for data beside that of its steps")
    half = m.value[len(m.step) // 2 :]
    if len(half) < rank_shapes.SIDE or not np.isfinite(half).all() or not np.isfinite(whole.value).all():
        return cannot_tell(f"only {len(m.step)} finite times spent waiting for data were logged by several ranks.")
    usual, step = np.median(half, axis=0), median(whole.value[len(whole.step) // 2 :])
    j, told = int(usual.argmax()), ", ".join(f"{x:.3g} on rank {r}" for r, x in list(zip(m.ranks, usual.tolist(), strict=True))[:8])
    text = f"The median time spent waiting for data in the second half of the run is {told}, and that of a step {step:.3g} ({m.tag}, {whole.tag})."
    if usual[j] >= utilization.WAITING * step and usual[j] >= utilization.DOUBLES * float(np.delete(usual, j).max()):
        return seen(text, first=int(m.step[len(m.step) // 2]), last=int(m.step[-1]), rank=m.ranks[j])
    return absent(text)


def _of_one_rank(s: Symptoms, name: str, what: str) -> Sign:
    """Why ranks cannot be compared in a metric."""
    processes = settings.number(s.run, "world_size") or 1
    if processes > 1 or ranks.columns(s.run):
        return cannot_tell(f"only one rank logs {what}." if series(s.run, name) is not None else f"no rank logs {what}.")
    return does_not_arise(f"only one process is known, and ranks are not compared in {what}.")


def _halves_of_run(s: Symptoms) -> Sign:
    """Seen with the speeds of the two halves; cannot tell where the detector of speed cannot."""
    try:
        metric, rows, speed = throughput.speed_of(s.run)
    except CannotTell as e:
        return cannot_tell(f"{e}.")
    if len(speed) < 2 * throughput.SIDE:
        return cannot_tell(f"only {len(speed)} values of the speed were logged.")
    first, second = _halves(speed)
    if not first > 0:
        return cannot_tell("the logged speed is no positive number.")
    text = f"The second half of the run went at {second / first:.0%} of the speed of the first ({metric.tag})."
    return seen(
        text, where=metric.place(s.run, rows[-1]), first=int(metric.step[rows[0]]), last=int(metric.step[rows[-1]]), ratio=second / first
    )


def _changed(s: Symptoms, what: str) -> Sign:
    found = [f for f in s.of(utilization.Facts) if f.facts.what == what and f.facts.changed]
    facts = found[0].facts
    first, last = found[0].first_step, found[0].last_step
    kind, do = KINDS.get(what, ("", ""))
    return seen(
        f"{found[0].title}.", found[:1], do=(do,) if do else (), first=first, last=last, before=facts.before, after=facts.after, kind=kind
    )


def _halves(x: Floats) -> tuple[float, float]:
    middle = max(len(x) // 2, 1)
    return median(x[:middle]), median(x[middle:] if len(x) > 1 else x)
