"""The share of units that give nothing, as it was logged or as the rest of a logged share of active ones."""

from __future__ import annotations

import re
from dataclasses import replace

from forensics.run.metrics_in_words import LEAST, LONGEST, worded
from forensics.run.once import once
from forensics.run.series import Series, parts
from parsers.name_rules import words
from parsers.tables import Run

# "relu_on/conv2": a unit that is on, in a layer
ON = r"^(?!.*\b(off|dead)\b)(?:.*[ /])?(?:relus?|units?|neurons?)[ /]on\b"
ACTIVE = (
    r"^(?!.*\b(experts?|features?|latents?|codes?|params?|parameters?|tokens?|mem(ory)?|gpus?|ranks?|slots?|dead|inactive)\b)"
    r"(?=.*\b(act|acts|activations?|relus?|units?|neurons?|hidden)\b)(?=.*\b(frac|fraction|share|ratio|portion)\b)(?=.*\b(active|alive|firing|nonzero)\b)"
)


@once
def shares_zero(run: Run) -> tuple[Series, ...]:
    """Shares from 0 to 1: what was logged of zero activations, and one less what was logged of active units. Sparse codes and experts
    are idle on purpose and do not count."""
    named = tuple(p for p in parts(run, "act.active") if p.usable.sum() >= LEAST and re.search(ACTIVE, words(p.tag)[:LONGEST]))
    active = [s for s in (*named, *worded(run, ACTIVE), *worded(run, ON)) if s.value[s.usable].min() >= 0 and s.value[s.usable].max() <= 1]
    return (*parts(run, "act.zeros"), *(replace(s, value=1.0 - s.value) for s in active))
