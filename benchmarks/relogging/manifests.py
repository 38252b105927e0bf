"""Which samples each step saw, where metrics are written again: the same, at the steps of the copy."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from parsers.records.vocabulary import SURE_STEP, plain
from relogging import changes
from relogging.original import NotSound, Original, table


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Which samples of which shards each step saw, a line a step (and rank)."""
    by_step: dict[tuple[Any, Any], dict[str, list[str]]] = {}
    for r in rows:
        seen = by_step.setdefault((r["step"], r["rank"]), {"sample_ids": [], "shards": []})
        seen["sample_ids"] += [r["sample"]] if r["sample"] is not None else []
        seen["shards"] += [r["shard"]] if r["shard"] is not None and r["shard"] not in seen["shards"] else []
    with path.open("w") as file:
        for (step, rank), seen in by_step.items():
            place = {"step": step} | ({} if rank is None else {"rank": rank})
            file.write(json.dumps(place | {k: v for k, v in seen.items() if v}) + "\n")


def shifted(original: Original) -> dict[str, str]:
    """The manifests that are copied, their steps counted as those of the metrics."""
    by, found = changes.shift(original.streams), {}
    for name in original.others():
        f = original.files.get(name)
        if f is None or not any(r["step"] is not None for r in table(f, "batches")):
            continue
        text = f.path.read_text(encoding="utf-8")
        if f.source.format == "jsonl":
            rows = [json.loads(part) for part in text.splitlines() if part.strip()]
            found[name] = "".join(json.dumps({k: _moved(k, v, by) for k, v in r.items()}) + "\n" for r in rows)
        elif f.source.format == "csv_log":
            head, *lines = csv.reader(text.splitlines())
            moved = [[str(_moved(k, int(v), by)) if plain(k) in SURE_STEP else v for k, v in zip(head, r, strict=True)] for r in lines]
            file = io.StringIO()
            csv.writer(file, lineterminator="\n").writerows([head, *moved])
            found[name] = file.getvalue()
        else:
            raise NotSound("a manifest that cannot be shifted")
    return found


def _moved(key: str, value: Any, by: int) -> Any:
    return value + by if plain(key) in SURE_STEP and isinstance(value, int) else value
