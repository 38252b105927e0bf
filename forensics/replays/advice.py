"""The words about replay in a case: the command that would settle a cause, and none of it once the run has been replayed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from forensics.case import Hypothesis
from forensics.causes.files import causes
from forensics.replays import verdict
from parsers.lazy_regex import lazy_re
from parsers.tables import Run
from parsers.walk import is_regular

ASKS = lazy_re(r"\breplay|\bby heart\b", re.I)
NEEDED = [lazy_re(rf"^def {name}\(", re.M) for name in ("build", "batch", "loss")]
MOST_FILES, MOST_BYTES = 40, 1 << 20


def adapter_of(run: Run) -> str:
    """The adapter that this run could be replayed with: a file in its folder that has the contract's functions, `hf`, or ""."""
    root = Path(run.root)
    folder = root if root.is_dir() else root.parent
    for path in sorted(folder.glob("*.py"))[:MOST_FILES]:
        try:
            small = is_regular(path, links=False) and path.stat().st_size < MOST_BYTES
            text = path.read_text("utf-8", "replace") if small else ""
        except OSError:
            continue
        if all(name.search(text) for name in NEEDED):
            return str((Path(run.path) if root.is_dir() else Path(run.path).parent) / path.name)
    saved = any(True for p in ("training_args.bin", "checkpoint-*/training_args.bin") for _ in folder.glob(p))
    data = any(True for p in ("*/state.json", "*/dataset_dict.json", "*/*/state.json") for _ in folder.glob(p))
    return "hf" if saved and data else ""


def command(run: Run, adapter: str, *more: str) -> str:
    return " ".join(["forensics replay", shlex.quote(run.path), "--adapter", shlex.quote(adapter), *more])


def offered(run: Run, hypotheses: Sequence[Hypothesis]) -> tuple[Hypothesis, ...]:
    """What would settle each cause, with the command where replay does it: with the run's own adapter, or one to be written."""
    if not any(h.settle and (_told(h) or ASKS.search(h.settle)) for h in hypotheses):
        return tuple(hypotheses)
    adapter = adapter_of(run)
    run_it = f"`{command(run, adapter or 'adapter.py')}`"
    if adapter.endswith(".py"):
        run_it = f"{Path(adapter).name} came with the run and is foreign code, read it before you run {run_it}"
    does = f"Replay does it: {run_it}{'' if adapter else ', with an adapter that `forensics replay --init` writes for you to fill in'}."
    return tuple(replace(h, settle=_with(h, does, f"Replay tells it, too: {run_it}." if adapter else "")) for h in hypotheses)


def _told(h: Hypothesis) -> bool:
    """Whether a replay weighs in on the cause."""
    return h.id in causes() and bool(causes()[h.id].outcomes)


def _with(h: Hypothesis, does: str, tells: str) -> str:
    if not h.settle:
        return ""
    return f"{h.settle} {does}" if ASKS.search(h.settle) else f"{h.settle} {tells}" if tells and _told(h) else h.settle


def stopped_early(document: dict[str, Any]) -> bool:
    """Whether budget or time ended before all experiments were done."""
    return any(document.get(k) for k in ("not_tried", "budget_note", "too_little"))


def resolved(run: Run, hypotheses: Iterable[Hypothesis], document: dict[str, Any], adapter: str) -> tuple[Hypothesis, ...]:
    """After a replay no cause asks for one, but where its budget ended too early."""
    again = ""
    if document["verdict"] == verdict.UNDECIDED and stopped_early(document):
        steps = 4 * max(document["budget"], document["bound"])
        again = f"Replay with more steps: `{command(run, adapter, '--budget', str(steps))}`."
    return tuple(replace(h, settle=again) if ASKS.search(h.settle) else h for h in hypotheses)
