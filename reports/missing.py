"""The checks that could not tell, grouped by what was missing."""

from __future__ import annotations

import re
from typing import Any

from reports import first_screen

Case = dict[str, Any]
# What a check that cannot tell says it lacks, by the words of its note; the first that fits.
SUBJECTS = (
    ("rewards, policies and values", r"reward|policy|\brl\.|value loss|margins|preferences|chosen answers"),
    ("measures of experts, discriminators and latents", r"expert|discriminator|\bkl\b|samples were|diversity"),
    ("checkpoints", r"checkpoint|same weights"),
    ("a second process or run", r"\brank|process|one run|restarted"),
    ("evaluations", r"eval|accuracy"),
    ("gradient norms, layers and attention", r"grad|norms|attn|dead units"),
    ("times, speed and memory", r"throughput|clock|mfu|time|memory|load of"),
    ("settings, rate and source", r"config|\blr\b|rate|scale|vocabulary|source"),
    ("training losses", r"loss|spike"),
)  # fmt: skip
OTHER = "other values"


def groups(case: Case) -> list[tuple[str, list[str]]]:
    """(what was missing, ids of the checks), most checks first; a check that broke stands under that."""
    found: dict[str, list[str]] = {}
    for c in first_screen.by_status(case, "cannot_tell", "error"):
        subject = next((name for name, words in SUBJECTS if re.search(words, c["note"].lower())), OTHER)
        found.setdefault("nothing: the check broke" if c["status"] == "error" else subject, []).append(c["id"])
    return sorted(found.items(), key=lambda g: (g[0] == OTHER, -len(g[1]), g[0]))
