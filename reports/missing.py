"""The checks that could not tell, grouped by what they look at (``needs`` of the case)."""

from __future__ import annotations

from typing import Any

from reports import first_screen

Case = dict[str, Any]
GROUPS = (  # (what was missing, how the names of its metrics begin, or its artefacts), the first that fits
    ("evaluations", ("loss.eval", "acc.eval", "ppl.eval", "bpb.eval", "score.eval")),
    ("training losses", ("loss.", "acc.train", "ppl.train")),
    ("rewards, policies and preferences", ("rl.", "pref.")),
    ("gradient norms, layers and attention", ("grad.", "param.", "upd.", "attn.")),
    ("times, speed and memory", ("time.", "tput.", "gpu.", "mem.", "mfu", "wall clock")),
    ("settings, rate and source", ("lr", "loss_scale", "config", "source")),
    ("checkpoints", ("checkpoints",)),
    ("batch ids", ("batch ids",)),
    ("a second process or run", ("ranks", "restarts", "runs")),
    ("loads of experts and generated samples", ("moe.", "samples")),
)
OTHER = "other values"


def groups(case: Case) -> list[tuple[str, list[str]]]:
    """(what was missing, ids of the checks), most checks first; a check that broke stands under that."""
    found: dict[str, list[str]] = {}
    for c in first_screen.by_status(case, "cannot_tell", "error"):
        first = next(iter(c["needs"]), "")
        subject = next((name for name, begins in GROUPS if first.startswith(begins)), OTHER)
        found.setdefault("nothing: the check broke" if c["status"] == "error" else subject, []).append(c["id"])
    return sorted(found.items(), key=lambda g: (g[0] == OTHER, -len(g[1]), g[0]))
