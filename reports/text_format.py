"""How numbers, steps, times and doubt are written, the same in every output.

All functions are total: a value that a damaged or foreign case holds in place of the expected one is shown as it is.
"""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from typing import Any

SPIKES = {"fast": "fast spike", "slow": "slow spike", "non_recovering": "spike without recovery", "not_a_spike": "not a spike"}
METRICS = {
    "loss.train": "training loss", "loss.aux": "loss term", "loss.eval": "evaluation loss", "grad.norm": "gradient norm", "lr": "learning rate",
    "loss_scale": "loss scale", "time.step": "time a step", "time.data": "time waiting for data",
    "mfu": "model FLOPs use",
    "tput.tokens": "tokens a second", "tput.samples": "samples a second", "tput.steps": "steps a second",
    "tput.tokens_dev": "tokens a second and device", "tput.samples_dev": "samples a second and device",
    "mem.alloc": "memory in use", "mem.reserved": "memory reserved", "param.norm": "parameter norm",
    "attn.max_logit": "largest attention logit", "acc.train": "training accuracy", "acc.eval": "evaluation accuracy",
    "skip.count": "skipped steps", "batch.size": "batch size", "gpu.mem": "GPU memory", "gpu.util": "GPU load",
    "grad.norm_layer": "gradient norm by layer", "rl.reward": "reward", "rl.entropy": "policy entropy", "rl.kl": "policy KL",
    "rl.loss_value": "value loss", "pref.margin": "preference margin", "pref.acc": "preference accuracy",
}  # fmt: skip
FACTS = {  # how the numbers of a finding are named; others by their own name
    "noise_sigmas": "height in widths of the noise", "sigmas": "height in widths of the noise",
    "half_life": "steps to half its height", "top": "highest", "level": "usual", "redone": "steps done twice",
    "idle": "seconds down", "count": "values", "grad_ratio": "gradient norm, times its usual",
    "grad_before": "gradient norm just before", "grad_usual": "usual gradient norm", "grad_highest": "highest gradient norm before",
    "loss_ratio": "loss, times its usual", "loss_before": "loss just before", "loss_usual": "usual loss",
    "loss_highest": "highest loss before", "residual_offset": "stays above by",
}  # fmt: skip
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# Harmless in a log, but on a page or a terminal they hide, reorder or command: C0 without tab and newline, DEL and C1; marks that
# reorder text; line separators; what Unicode calls default-ignorable, for it is drawn as nothing (DerivedCoreProperties.txt of Unicode
# 16: soft hyphen, joiners, fillers, tags, variation selectors ...) with the format controls beside it; halves of surrogate pairs. A
# variation selector is left right behind a symbol, where it only says how an emoji is drawn.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    "|(?<![\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]"
)


def visible(text: Any) -> str:
    """Text with every character that steers, reorders or hides spelled out (``\\x1b``, ``\\u202e``), so that it stays text."""
    return _UNSEEN.sub(lambda m: _spelled(ord(m[0])), str(text).replace("\r\n", "\n"))


def _spelled(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def visible_json(text: str) -> str:
    """JSON with such characters as its own escapes: what is read back is the same."""
    if text.isascii():  # within a text JSON has escaped all but one of them; a search costs half a second for 50,000 tensors
        return text.replace("\x7f", "\\u007f")
    return _UNSEEN.sub(lambda m: "\\u007f" if m[0] == "\x7f" else json.dumps(m[0])[1:-1], text)


def one_line(text: Any) -> str:
    """Visible text without line breaks or repeated spaces."""
    return " ".join(visible(text).split())


def cut(text: str, width: int, *, left: bool = False) -> str:
    if len(text) <= width:
        return text
    return "\u2026" + text[-(width - 1) :] if left else text[: width - 1] + "\u2026"


def is_command(text: Any) -> bool:
    """Whether a whole text is something to paste into a shell, not a sentence about it."""
    return isinstance(text, str) and text.startswith(("forensics ", "python ", "git ", "grep ")) and "`" not in text


def metric(name: str) -> str:
    return METRICS.get(name, name.removeprefix("other/"))


def duration(seconds: float) -> str:
    """'41 seconds', '35 minutes', '8 hours', '3 days': the largest unit of which there are two."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def percent(p: Any) -> str:
    """A probability; never 0 or 100 %, which no log can prove."""
    if not isinstance(p, (int, float)) or not math.isfinite(p):
        return "?"
    if p < 0.001:
        return "< 0.1 %"
    if p > 0.999:
        return "> 99.9 %"
    return f"{100 * p:.1f} %" if p < 0.0995 or p > 0.99 else f"{100 * p:.0f} %"


def decibans(weight: Any) -> str:
    """A signed weight with a true minus: +7, −4, 0."""
    if not isinstance(weight, (int, float)) or not math.isfinite(weight):
        return "?"
    text = f"{abs(weight):.1f}".removesuffix(".0")
    return text if text == "0" else ("+" if weight > 0 else "\u2212") + text


def number(value: Any) -> str:
    """Four significant digits, without exponents where a reader needs none; anything that is no float as it is."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "\u2013"}[value]
    if isinstance(value, float) and math.isfinite(value):
        if value == 0 or 1e-4 <= abs(value) < 1e6:
            text = f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
            return text.replace("-", "\u2212")
        mantissa, exponent = f"{value:.3e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}".replace("-", "\u2212")
    if isinstance(value, (list, tuple)):
        shown = ", ".join(number(v) for v in value[:12])
        return shown + (f" and {len(value) - 12} more" if len(value) > 12 else "")
    if isinstance(value, dict):
        return ", ".join(f"{k}: {number(v)}" for k, v in value.items())
    return str(value)


def bytes_(n: Any) -> str:
    """A file size in decimal units."""
    if not isinstance(n, (int, float)):
        return "\u2013"
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= factor:
            return f"{n / factor:.3g} {unit}"
    return f"{n:.0f} bytes"


def steps(pair: Any, unit: str = "step") -> str:
    """'step 418', 'steps 418 to 431', 'from step 418' or ''."""
    if not isinstance(pair, (list, tuple)) or len(pair) != 2 or pair[0] is None:
        return ""
    first, last = pair
    if last is None:
        return f"from {unit} {first}"
    return f"{unit} {first}" if first == last else f"{unit}s {first} to {last}"


def reach(run: dict[str, Any]) -> str:
    """How far a run came, in the labels of its log: 'steps 0 to 999', 'epochs 0 to 9'."""
    return steps(run.get("steps"), label_unit(run))


def label_unit(run: dict[str, Any]) -> str:
    """What the labels of the log count: 'step' or 'epoch'."""
    return "epoch" if run.get("step_unit") == "epoch" else "step"


def at(run: dict[str, Any], told: dict[str, Any]) -> str:
    """Where a finding or a cause stands, in the labels of the log."""
    return steps(told["labels"], label_unit(run))


def axis(run: dict[str, Any]) -> list[Any]:
    """First and last step of the axis that findings and series count; in cases that do not tell it apart, the steps of the run."""
    told = run.get("axis")
    pair = told.get("steps") if isinstance(told, dict) else None
    known = pair if isinstance(pair, list) and len(pair) == 2 and None not in pair else run.get("steps")
    return list(known) if isinstance(known, (list, tuple)) and len(known) == 2 else [None, None]


def axis_unit(run: dict[str, Any]) -> str:
    """What one step of that axis is: 'step' or 'epoch'."""
    told = run.get("axis")
    return "epoch" if isinstance(told, dict) and told.get("unit") == "epoch" else "step"


def axis_note(run: dict[str, Any]) -> str:
    """What the steps of charts are, where they are not the labels of the log; else empty."""
    other = axis_unit(run) != "epoch" and run.get("step_unit") == "epoch" and steps(axis(run))
    return f"charts count {other}" if other else ""


def stamp(seconds: float) -> str | None:
    """Seconds since 1970 as the case writes times; None where no calendar has them."""
    if not math.isfinite(seconds) or not 0 < seconds < 253402300799:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_time(time: Any) -> bool:
    return isinstance(time, str) and re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])-\d\dT\d\d:\d\d:\d\dZ", time) is not None


def moment(time: Any) -> str:
    """'2026-11-21T02:44:14Z' as '2026-11-21 02:44:14 UTC'."""
    return time[:19].replace("T", " ") + " UTC" if is_time(time) else str(time or "")


def period(times: Any) -> str:
    """One moment or a stretch; the day is not repeated."""
    first, last = times if isinstance(times, (list, tuple)) and len(times) == 2 else (None, None)
    if not isinstance(first, str) or not isinstance(last, str) or first == last:
        return moment(first or last)
    return moment(first).removesuffix(" UTC") + " to " + (moment(last)[11:] if first[:10] == last[:10] else moment(last))


def day(time: str) -> str:
    """'2026-11-21T02:44:14Z' as '21 Nov'."""
    return f"{int(time[8:10])} {_MONTHS[int(time[5:7]) - 1]}"


def plural(n: int, one: str, many: str = "") -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


def joined(items: list[str], limit: int = 6) -> str:
    """'a, b and c', or 'a, b and 4 more'."""
    if len(items) > limit:
        items = [*items[: limit - 1], f"{len(items) - limit + 1} more"]
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1] if items else ""
