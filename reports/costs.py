"""What a failure cost, and how much of the work was of use."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from reports import text_format

Case = dict[str, Any]


def cost(case: Case) -> str:
    """What it cost: steps repeated, spent until the loss recovered, or run without recovery; in time and GPU-hours
    where the log has a clock and says how many processes there were."""
    attempts = [a["steps"] for a in case["run"]["attempts"] if None not in (a.get("steps") or [None])]
    again = sum(max(0, a[1] - b[0] + 1) for a, b in pairwise(attempts))
    last = text_format.axis(case["run"])[1]
    cut = {str(s["finding"]) for s in case["spikes"] if s.get("censored") and s.get("finding")}  # by the end of the log
    bands = [b for b in case["timeline"]["bands"] if b.get("kind") == "non_recovering" and str(b.get("finding")) not in cut]
    lost = [b["from"] for b in bands if b.get("from") is not None]
    standing = [s for s in lost if not any(begin[0] <= s <= end[1] for end, begin in pairwise(attempts))]
    spikes = [s for s in case["spikes"] if s.get("class") not in ("not_a_spike", "non_recovering")]
    spikes = [s for s in spikes if not any(_reaches(s, at) for at in standing)]  # its loss did not come back for good
    spent = sum(_lasted(s) for s in spikes)
    vain = last - min(standing) + 1 if standing and last is not None else 0
    told = ((again, "{} repeated"), (spent, f"{{}} in {'a spike' if len(spikes) == 1 else 'spikes'} that came back"),
            (vain, f"{_never(case, bands)} never recovers in the remaining {{}}"))  # fmt: skip
    text = "; ".join(what.format(text_format.plural(n, "step")) for n, what in told if n > 0)
    return text + _spent(case, again + spent + max(vain, 0)) if text else ""


def _reaches(spike: Case, step: float) -> bool:
    """Whether it goes on at that step or begins after it."""
    end = spike.get("end")
    return isinstance(end, (int, float)) and end >= step


def _never(case: Case, bands: list[Case]) -> str:
    """What does not come back: the loss, or what is measured in its place."""
    ids = {str(b.get("finding")) for b in bands}
    metrics = [
        str(e["data"]["metric"]) for f in case["findings"] if str(f.get("id")) in ids for e in f["evidence"] if e["data"].get("metric")
    ]
    return "the loss" if not metrics or any(m.startswith("loss") for m in metrics) else text_format.metric(metrics[0])


def _lasted(spike: Case) -> int:
    """Steps from its start until the loss was back, as the finding's title counts them; where no end is known, until it had regained its level."""
    start, end = spike.get("start"), spike.get("end")
    return int(end - start) if isinstance(start, (int, float)) and isinstance(end, (int, float)) else spike.get("cost_steps") or 0


def _spent(case: Case, steps: float) -> str:
    """': 12 minutes, 12.8 GPU-hours on 64 processes' for so many steps, as far as it is known."""
    known = _goodput(case)
    running, done = known.get("seconds_running"), known.get("steps_done")
    if not running or not done:
        return ""
    seconds, n = steps * running / done, known.get("processes", 0)
    if seconds < 1:
        return ""
    hours = f", {text_format.number(seconds * n / 3600)} GPU-hours on {int(n)} processes" if n > 1 else ""
    return f": {text_format.duration(seconds)}{hours}"


def _goodput(case: Case) -> dict[str, float]:
    found = case["run"].get("goodput")
    return {k: v for k, v in found.items() if isinstance(v, (int, float))} if isinstance(found, dict) else {}


def goodput(case: Case) -> str:
    """How much of the work was of use, in one line; nothing where nothing was lost. Of the wall clock a share is told where the run ran
    for longer than it lay still; else how long that was."""
    known = _goodput(case)
    down, parts = known.get("seconds_down", 0), (("share_steps", "the steps"), ("share_time", "the wall clock"))
    idle = known.get("seconds_running", math.inf) < down
    shares = [(known[key], of) for key, of in parts if key in known and not (idle and key == "share_time")]
    if not known.get("interruptions") or (all(share >= 1 for share, _ in shares) and not idle):
        return ""
    line = " and ".join(f"all of {of}" if share >= 1 else f"{text_format.percent(share)} of {of}" for share, of in shares)
    line = f"{line} useful; {text_format.plural(int(known['interruptions']), 'interruption')}"
    line += f", down for {text_format.duration(down)}" if idle else ""
    if known["interruptions"] > 1 and "seconds_between" in known:
        line += f", one in {text_format.duration(known['seconds_between'])} of running"
    if "checkpoint_every_steps" in known:
        line += f"; saved every {text_format.plural(int(known['checkpoint_every_steps']), 'step')}"
        line += f", Young's rule says every {known['best_every_steps']}" if "best_every_steps" in known else ""
    return line
