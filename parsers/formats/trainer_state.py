"""Hugging Face Trainer states and results; LLaMA-Factory ``trainer_log.jsonl``, ms-swift ``logging.jsonl``.

``trainer_state.json`` lies in every ``checkpoint-*`` and, after ``save_state``, at the root; each copy repeats the
whole ``log_history`` so far (transformers, trainer_callback.py ``TrainerState.save_to_json``:
``json.dumps(indent=2, sort_keys=True)``, so NaN and Infinity stand bare). Its entries are rows of metrics with
their ``step``; the last one of a run holds means over the whole run. ``*_results.json`` (``Trainer.save_metrics``)
repeat those without a step. The settings in it (``max_steps``, ``logging_steps``, ...) become config rows;
``total_flos`` and ``best_metric`` are metrics at ``global_step``.

A file that was cut keeps every whole entry; after local damage the entries behind it are found, too. ``at`` counts
the entries from 1 (in the line logs, the lines). ms-swift writes its step as "12/300" under
``global_step/max_steps``, LLaMA-Factory as ``current_steps``; both write durations as text, which is left out, as
it only says the clock again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from parsers.formats import jsonl
from parsers.lazy_regex import lazy_re
from parsers.records import json_kinds, tolerant_json
from parsers.records.cells import as_number
from parsers.records.json_rows import Log
from parsers.records.json_values import flat, whole_column
from parsers.tables import Gap, Note, Rows

AT = "entry"

_STATE = {"epoch", "global_step", "total_flos", "best_metric", "best_global_step", "best_model_checkpoint", "log_history"}
_HISTORY = lazy_re(r'"log_history"\s*:\s*\[\s*(?=\{)')
_SETTING = lazy_re(
    r'"(max_steps|num_train_epochs|logging_steps|save_steps|eval_steps|train_batch_size|global_step|total_flos|best_metric)"'
    r"\s*:\s*(-?[\d.]+(?:[eE][+-]?\d+)?)(?=\s*[,}])"
)
_NOT_METRICS = {
    "percentage",
    "elapsed_time",
    "remaining_time",
    "total_steps",
    "log_history",
    "last_model_checkpoint",
    "best_model_checkpoint",
}


def claims(path: Path, head: bytes) -> bool:
    return json_kinds.kind_of(path, head) == "trainer"


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    if path.suffix.lower() == ".jsonl":
        yield from _lines(path)
        return
    text, gaps = tolerant_json.read(path)
    yield from gaps
    opening = _HISTORY.search(text)
    rows, state, behind, damage = _state(text, opening.end() if opening else None)
    if rows and not (isinstance(state, dict) and isinstance(state.get("log_history"), list)):  # not the list it seemed
        rows, state, behind, damage = _state(text, None)
    yield from damage
    history = state.get("log_history") if isinstance(state, dict) else state
    if history is None and isinstance(state, dict) and "results" in path.stem.lower():
        history, state = [state], {}  # all_results.json: one entry without a step
    entries = [e if isinstance(e, dict) else {} for e in history] if isinstance(history, list) else []
    log = Log(fill=False)
    entries = [*rows, *entries, *behind]
    yield from log.add(entries, range(1, len(entries) + 1))
    if isinstance(state, dict):
        _settings(state, log)
    yield from log.finish()


def _state(text: str, begin: int | None) -> tuple[list[dict[str, Any]], Any, list[dict[str, Any]], list[Gap]]:
    """The rows of the list that opens before ``begin``, as far as they are sound; then all the rest: the document
    without these rows, the rows behind a damage, and the gaps."""
    rows, end = tolerant_json.rows(text, begin) if begin is not None else ([], 0)
    start = begin or 0
    skipped = len(text[start:end].encode("utf-8", "replace"))
    text = text[:start] + text[end:]
    try:
        return rows, tolerant_json.loads(text), [], []
    except (ValueError, RecursionError):
        state, behind, gaps = _damaged(tolerant_json.clean(text), start, skipped)
        return rows, state, behind, gaps


def _settings(state: dict[str, Any], log: Log) -> None:
    """Everything beside the history: settings, and two numbers that belong to the step of this copy."""
    steps = whole_column([state.get("global_step")])
    for key in ("total_flos", "best_metric"):
        value = as_number(state.get(key))
        if value is not None:
            log.rows.metric(None if steps is None else int(steps[0]), key, value)
    for key, value in state.items():
        if key == "stateful_callbacks" and isinstance(value, dict):
            for k, x in flat("stateful_callbacks", value):
                if ".args." in k and not k.startswith("stateful_callbacks.TrainerControl."):
                    log.rows.config(k, x)
        elif key not in _STATE and not isinstance(value, (dict, list)):
            log.rows.config(key, value)


def _damaged(text: str, start: int, skipped: int) -> tuple[dict[str, Any], list[dict[str, Any]], list[Gap]]:
    """What a broken state says before its first damage, the entries behind it, and the gaps between them.

    ``skipped`` bytes were taken out of the text at ``start``.
    """

    def place(position: int) -> str:
        before = len(text[:position].encode("utf-8", "replace"))
        return f"byte {before + skipped * (position >= start)}"

    document, at, in_row = tolerant_json.recover(text)
    state = document if isinstance(document, dict) else {"log_history": document} if isinstance(document, list) else {}
    end, behind, gaps = at, [], []
    for start, stop, value in tolerant_json.objects(text, at):
        if "step" not in value and "epoch" not in value and "loss" not in value:
            continue  # the arguments of a callback
        if text[end:start].strip(" \t\r\n,"):
            gaps.append(Gap(place(end), "damaged: the log entry here could not be read", 1))
        behind.append(value)
        end = stop
    for m in _SETTING.finditer(text, end):
        state.setdefault(m[1], as_number(m[2]) if "." in m[2] or "e" in m[2].lower() else int(m[2]))
    rest = text[end:].strip()
    if rest and (not behind or not rest.endswith("}")):
        lost = 1 if (in_row and not behind) or "{" in rest else None
        what = "cut off: the last log entry is not whole" if lost else "cut off behind the last whole value"
        gaps.append(Gap(place(end), what, lost))
    if not gaps:
        gaps.append(Gap(place(at), "damaged JSON", None))
    return state, behind, gaps


def _lines(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    log = Log(fill=False)
    settings = Rows()
    known: set[tuple[str, Any]] = set()
    for item in jsonl.entries(path):
        if isinstance(item, Gap):
            yield item
            continue
        rows, at = item
        for row, line in zip(rows, at, strict=True):
            for key, value in _totals(row):
                if (key, value) not in known and len(known) < 100:
                    known.add((key, value))
                    settings.config(key, value, at=line)
        yield from log.add([{k: x for k, x in row.items() if k not in _NOT_METRICS} for row in rows], at)
    yield from log.finish()
    yield from settings.flush()


def _totals(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """How long the run was meant to be."""
    if isinstance(row.get("total_steps"), int):
        yield "max_steps", row["total_steps"]
    both = row.get("global_step/max_steps")
    if isinstance(both, str) and both.rpartition("/")[2].isdecimal():
        yield "max_steps", int(both.rpartition("/")[2])
