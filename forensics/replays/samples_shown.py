"""Samples of culprit batches beside ordinary ones from the adapter itself, for the page (`--show-data`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from forensics.read_data import reading
from forensics.read_data.chosen_batches import ORDINARY, SUSPECTS, Batch
from forensics.replays.client import ReplayFailed
from forensics.replays.request import Result, Scene
from parsers.records.data_set_rows import Unreadable
from parsers.tables import Run

MOST = 1 << 16  # numbers of a tensor of one sample that the worker sends: bound, a picture of 112 x 112 has 37,632
Kept = list[dict[str, Any]]


def keep(scene: Scene, step: int, rows: Sequence[int], spare: Sequence[int]) -> None:
    """Asks the worker for the culprit's rows, and once for those of two ordinary batches that took its place."""
    kept = scene.result.content
    if sum(b["suspect"] for b in kept) >= SUSPECTS:
        return
    wanted = [(step, list(rows) or list(range(reading.SHOWN)), True)]
    if not kept:
        wanted += [(s, list(range(reading.BESIDE)), False) for s in spare[:ORDINARY]]
    for number, asked, suspect in wanted:
        try:
            total = scene.lab.worker.ask("ids", batches=[number])["rows"][0]
            found = scene.lab.worker.ask("content", batch=number, rows=[i for i in asked if i < total][: reading.SHOWN], most=MOST)
        except ReplayFailed as e:
            if e.kind != "adapter":
                raise
            found = {"of": 0, "ids": [], "tensors": [], "why": e.sentence}
        kept.append({"step": number + scene.shift, "suspect": suspect, "count": len(rows) or found["of"], **found})


def shown(run: Run, result: Result, adapter: Path) -> dict[str, Any]:
    """What the page shows of them, read with a tokenizer that lies beside the run or the adapter."""
    vocabulary, notes = reading.tokenizer(run, adapter)
    about = {"data": adapter.name, "kind": "batches of the adapter", "tokenizer": vocabulary.source if vocabulary else "", "notes": notes}
    if not result.content:
        return about | reading.NOTHING | {"why": "The replay blames no batch: nothing to show."}
    kept: dict[bool, dict[int, dict[str, Any]]] = {True: {}, False: {}}
    for b in result.content:
        kept[b["suspect"]].setdefault(b["step"], b)
    suspects, others = ([_batch(b) for b in kept[side].values()] for side in (True, False))
    every = kept[False] | kept[True]

    def rows(batch: Batch) -> dict[Any, dict[str, Any]]:
        b = every[batch.step]
        if b.get("why"):
            raise Unreadable(b["why"])
        return dict(zip(map(_plain, b["ids"]), map(_row, b["tensors"]), strict=False))

    return about | reading.beside(suspects, others, rows, vocabulary) | {"rule": "those that replay put in its place"}


def _batch(b: dict[str, Any]) -> Batch:
    how = "blamed by the replay" if b["suspect"] else "from the adapter"
    return Batch(b["step"], 0, tuple(map(_plain, b["ids"])) or ("?",), b["count"], how)


def _plain(name: Any) -> Any:
    return name if isinstance(name, (int, str)) else str(name)


def _row(tensors: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {name: np.array(t["values"], dtype=t["dtype"]).reshape(t["shape"])[()] for name, t in tensors.items()}
