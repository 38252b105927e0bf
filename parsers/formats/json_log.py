"""Whole JSON documents: metric histories, summaries, batch manifests, post-mortems, settings that no name gives away.

Shapes that hold rows, wherever they are nested: a list of objects; an object of lists of one length (Keras
``History.history``); a list of numbers, which the file's name names; an object whose keys are steps; Sacred's ``metrics.json`` ({name: {steps, timestamps,
values}}, Sacred 0.8 observers/file_storage.py); TensorBoard's download ([[wall time, step, value], ...]). What is
left over is settings (config rows, keys joined by "."), but for numbers that are results by name (``val_loss``,
``best_acc``): those are metrics with the document's own step, or none. Errors and tracebacks become events.

Vocabularies, tokenizers, package files, notebooks and data sets are named in a note and left. ``at`` counts the
rows of a list from 1. A document that was cut keeps every whole row; several documents in one file are read as rows
of a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from parsers.records import json_kinds, tolerant_json
from parsers.records.cells import as_number, seconds
from parsers.records.json_rows import Log
from parsers.records.json_tables import RESULT, RESULT_FILE, SETTING, WRAPPERS, Leaf, tables
from parsers.records.json_values import IDENTIFIER, holds_ids, whole_column
from parsers.records.vocabulary import AXES, WHOLE_HISTORY, last, plain
from parsers.tables import Gap, Note

AT = "entry"

_MAX_BYTES, _MAX_SETTINGS, _MAX_TEXT = 128 << 20, 2000, 1 << 20
_CURVE = 5  # bound: values; fewer are no curve
_OWN_STEP = ("step", "global_step", "trainer/global_step", "_step", "iteration", "iter", "current_step",
             "current_steps", "num_updates", "last_step", "final_step")  # fmt: skip
_TROUBLE = {"traceback", "exception", "error", "error_message", "fail_trace", "exit_reason", "stack_trace",
            "stacktrace"}  # fmt: skip
_STATUS = {"status", "exit_reason", "exit_code", "finish_reason"}


def claims(path: Path, head: bytes) -> bool:
    return json_kinds.kind_of(path, head) == "document"


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    if json_kinds.skipped(path):
        yield Note("a vocabulary, an index or a file of tools: no metrics, not read")
        return
    if path.stat().st_size > _MAX_BYTES:
        yield Note(f"more than {_MAX_BYTES >> 20} MiB in one JSON document: a data set, not read")
        return
    text, gaps = tolerant_json.read(path)
    yield from gaps
    document: Any = None
    try:
        document = tolerant_json.loads(text)
    except (ValueError, RecursionError):
        document, damage = _damaged(tolerant_json.clean(text))
        yield from damage
    if document is not None:
        yield from document_rows(document, path.stem)


def document_rows(document: Any, stem: str) -> Iterator[pa.RecordBatch | Gap | Note]:
    """The rows of a document; ``stem`` (the file's name) is a hint to what its numbers are."""
    if isinstance(document, dict) and "cells" in document and "nbformat" in document:
        yield Note("a notebook, not read")
        return
    if _is_row(document, stem):
        log = Log()
        yield from log.add([document], [1])
        yield from log.finish()
        return
    if _is_column(document):
        log = Log()
        yield from log.add([{stem: value} for value in document], range(1, len(document) + 1))
        yield from log.finish()
        return
    if _is_history(document):
        yield Note(WHOLE_HISTORY)
    rest: list[Leaf] = []
    rows_found = False
    for name, rows in tables(document, "", rest, stem):
        rows_found = True
        prefix = "/".join(p for p in name.split("/") if plain(p) not in WRAPPERS)
        log = Log()
        yield from log.add([_named(r, prefix, stem) for r in rows], range(1, len(rows) + 1))
        yield from log.finish()
    yield from single_values(rest, stem, rows_found)


def _is_row(document: Any, stem: str) -> bool:
    """Is a document what one epoch gave (AllenNLP's ``metrics_epoch_3.json``)? A list in it is of classes, not of steps."""
    if not isinstance(document, dict) or not RESULT_FILE.search(stem) or not all(map(_is_flat, document.values())):
        return False
    measured = sum(RESULT.search(k) is not None and as_number(v) is not None for k, v in document.items())
    return measured > 1 and isinstance(document.get("epoch"), int) and not any(n in map(plain, document) for n in _OWN_STEP)


def _is_column(document: Any) -> bool:
    """Is a document one list of numbers, as a curve is that was written with ``json.dump`` or ``print``? Whole ones may be ids."""
    return (
        isinstance(document, list) and len(document) >= _CURVE and set(map(type, document)) <= {int, float} and float in map(type, document)
    )


def _is_history(document: Any) -> bool:
    """Is a document curves of one length, as ``json.dump(history.history)`` behind Keras's ``fit`` writes them?"""
    curves = [v for v in document.values() if isinstance(v, list)] if isinstance(document, dict) else []
    long = len(curves) > 1 and len({*map(len, curves)}) == 1 and len(curves[0]) >= _CURVE - 1
    return long and all(as_number(x) is not None for curve in curves for x in curve)


def _is_flat(value: Any) -> bool:
    """No object, or one of numbers alone."""
    return not isinstance(value, dict) or all(as_number(v) is not None for v in value.values())


def _named(row: dict[str, Any], prefix: str, stem: str) -> dict[str, Any]:
    """A row with the name of its table in front of what it measured, but not in front of its step, time and ids."""
    if holds_ids(row) or not prefix:
        return {k or stem: v for k, v in row.items()}
    return {k if plain(k) in AXES else f"{prefix}/{k}" if k else prefix: v for k, v in row.items()}


# ---- what is left


def single_values(leaves: list[Leaf], stem: str, rows_found: bool = False) -> Iterator[pa.RecordBatch | Note]:
    """Settings, results and troubles among the single values of a document."""
    log = Log(fill=False)
    if len(leaves) > _MAX_SETTINGS:
        yield Note(f"{len(leaves)} single values: a table of something else than metrics, left out")
        return
    by_name = {plain(k): v for k, v, _ in leaves}
    own = (whole_column([by_name[n]]) for n in _OWN_STEP if n in by_name)
    step = next((int(s[0]) for s in own if s is not None), None)
    time = next((t for n in ("timestamp", "time", "end_time", "date") if (t := seconds(by_name.get(n))) is not None), None)
    told = bool(RESULT_FILE.search(stem)) and not re.search(r"(?i)config|args|params|metadata", stem)
    state = step is not None and len(leaves) <= 30 and all(x is None or isinstance(x, (int, float)) for x in by_name.values())
    long = 0
    for key, value, at in leaves:
        name = plain(last(key))
        number = as_number(value) if not isinstance(value, str) or value.lower() in ("nan", "inf", "-inf", "infinity") else None
        if state and name in _OWN_STEP:
            continue
        if number is not None and name not in _OWN_STEP and (state or _is_result(key, told)):
            log.rows.metric(step, key, number, time=time, at=at)
        elif name in _TROUBLE and value:
            text = "\n".join(map(str, value)) if isinstance(value, list) else str(value)
            log.rows.event(name, text, level="error", step=step, time=time, at=at)
        elif name in _STATUS and isinstance(value, (str, int)) and "/" not in key:
            log.rows.event("status", f"{name}: {value}", step=step, time=time, at=at)
        elif isinstance(value, list) and (rows_found or _data(value)):
            long += 1
        elif not (state and value is None):
            log.rows.config(key.replace("/", "."), value, at=at)
    if long:
        log.note(f"{long} lists that are neither metrics nor settings left out")
    yield from log.finish()


def _is_result(key: str, told: bool) -> bool:
    """Is a number a result by its name, not a setting? ``told``: the file's name says that it holds results."""
    name = last(key)
    if SETTING.search(name) or IDENTIFIER.search(name) or re.search(r"(?i)config|args|hparams|params|max_(grad_)?norm|clip", key):
        return False
    return RESULT.search(key) is not None or (told and "/" not in key)


def _data(value: list[Any]) -> bool:
    """A list too long or too wide for a setting. A table of shards (name, first, count) is short of that."""
    return len(value) > 10_000 or sum(len(str(x)) for x in value) > _MAX_TEXT


def _damaged(text: str) -> tuple[Any, list[Gap]]:
    """A broken document: its front, with the whole objects behind the damage as rows; or several documents, as rows."""
    document, at, in_row = tolerant_json.recover(text)
    behind = [(start, stop, value) for start, stop, value in tolerant_json.objects(text, at) if value]
    if isinstance(document, dict) and behind and not text[at : behind[0][0]].strip(" \t\r\n,"):
        return [document, *(v for _, _, v in behind)], []  # several documents, one after the other
    gaps, end = [], at
    rows = [v for _, _, v in behind if any(as_number(x) is not None for x in v.values())]
    for start, stop, _ in behind:
        if text[end:start].strip(" \t\r\n,]}"):
            gaps.append(Gap(tolerant_json.byte_at(text, end), "damaged JSON: what stood here could not be read", 1))
        end = stop
    if not behind or text[end:].strip(" \t\r\n,]}"):
        gaps.append(Gap(tolerant_json.byte_at(text, end), "cut off or damaged JSON", 1 if in_row else None))
    if not rows:
        return document, gaps
    if not isinstance(document, dict):
        document = document if isinstance(document, list) else []
        return [*(document or []), *rows], gaps
    table = next((v for v in document.values() if isinstance(v, list) and v and isinstance(v[-1], dict)), None)
    if table is not None:
        table += rows
        return document, gaps
    return {**document, "rows": rows}, gaps
