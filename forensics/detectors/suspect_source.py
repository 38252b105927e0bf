"""Suspect source

What it sees
    Slips in the source that lies with a run: beside its log, in the snapshot of a tracker (W&B ``code/``, ``_sources/``), in new files of
    ``diff.patch``, in a notebook, or in a log that begins with its own program.

How it decides
    The source is parsed, never imported and never run. Twenty looks at the loop, the loss, the loaders and the checkpoint each
    say that a thing is done wrong, done right, or cannot be told; docs/source.md lists them with the false alarms of each on
    public scripts. Where several scripts lie there and nothing says which one ran, only what they agree on counts. It is never
    more than information: source is a hint, and what the run measured is the proof.

Cannot tell
    Where no source lies with the run, where it does not parse as Python 3, or where a library's trainer runs the loop.

Folklore
    "You forgot to zero_grad() before backward(), you forgot to toggle train/eval mode, you passed softmaxed outputs to a loss that
    expects raw logits" (Karpathy's most common mistakes).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.source.answers import FAULT
from forensics.source.run_source import looked_at
from parsers import secrets
from parsers.tables import Run

NEEDS: list[str] = []
INPUTS = ["source"]
SMALLEST_EFFECT = "one line of source in a training loop that is whole"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """One slip in the source of a run."""

    look: str  # which of the looks found it
    where: str  # file and line
    files: list[str]  # of the scripts that were looked at


def detect(run: Run) -> Iterator[Finding]:
    found = looked_at(run)
    if not found.answers:
        why = f" ({found.unread[0]})" if found.unread else ""
        raise CannotTell(f"no source that trains something lies with the run{why}")
    for look, answer in found.answers.items():
        if answer.state == FAULT:
            shown = evidence.text("as written", [secrets.mask_text(answer.line)], answer.where)
            facts = Facts(look, answer.where, list(found.files))
            yield evidence.found(facts, answer.text.rstrip("."), (None, None), "info", shown, key=look)
