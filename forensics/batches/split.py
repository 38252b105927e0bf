"""How launches share one batch out: batch of a device x accumulation x processes, which may all change while the optimizer sees no change."""

from __future__ import annotations

import math
import re

from forensics.batches import sizes
from forensics.run import settings
from parsers.tables import Run

_KINDS = {name: kind for kind in ("accumulation", "world_size") for name in settings.names_of(kind)}
_KINDS |= dict.fromkeys(sizes.EACH.split(), "each") | dict.fromkeys(sizes.SOME.split(), "some") | dict.fromkeys(sizes.ALL.split(), "all")


def only_split(run: Run, old: dict[str, str], new: dict[str, str]) -> tuple[int, set[str]] | None:
    """(samples a step, keys that share them out otherwise) of two launches' configs (key -> JSON text) whose samples a step are known to
    be the same, by a setting, by the log or by the product; None where they are not, or nothing is shared out otherwise."""
    before, after = _numbers(old), _numbers(new)
    each = "each" if "each" in before else "some"
    one, other = ({k: told[k][1] for k in (each, "accumulation", "world_size") if k in told} for told in (before, after))
    changed = {k for k in one.keys() & other.keys() if one[k] != other[k]}
    # beside a batch of a device, `batch_size` is that of all
    totals = [k for k in ("all", "some") if k != each and k in before and k in after]
    total: float | None = None
    if totals:
        total = before[totals[0]][1] if before[totals[0]][1] == after[totals[0]][1] else None
    elif each in changed and (logged := sizes.logged(run)):  # the batch of a device would have changed in the log, too
        total = logged[0]
    elif each in one and one.keys() == other.keys() and len(changed) > 1 and math.prod(one.values()) == math.prod(other.values()):
        total = math.prod(one.values())
    return (int(total), {before[k][0] for k in changed}) if changed and total else None


def shares_out(key: str) -> bool:
    """Does a setting say how the samples of a step are shared out, or how many they are?"""
    return re.split(r"[./]", key)[-1].lower().replace("-", "_") in _KINDS


def _numbers(config: dict[str, str]) -> dict[str, tuple[str, float]]:
    """(key, value) of the first setting of each kind."""
    found: dict[str, tuple[str, float]] = {}
    for key, text in config.items():
        kind = _KINDS.get(re.split(r"[./]", key)[-1].lower().replace("-", "_"))
        value = settings.as_number(settings.plain(text))
        if kind and value and value > 0:
            found.setdefault(kind, (key, value))
    return found
