"""What `--show-data` puts onto the page: samples of suspect batches beside ordinary ones.

The content is plain data for the page alone: it is no part of the case, and a page made anew from the case does not have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from forensics.batches import inspect_samples
from forensics.batches.sample_stats import NAMES
from forensics.case import Case
from forensics.read_data import chosen_batches, column_numbers, sample_parts
from forensics.read_data.chosen_batches import Batch
from parsers.records import data_sets, token_pieces
from parsers.records.data_sets import DataSet, Unreadable
from parsers.records.token_pieces import Vocabulary
from parsers.tables import Run

SHOWN, BESIDE = 8, 4  # samples of a suspect and of an ordinary batch: bound, what somebody reads; the rest is counted
COMPARED = 64  # samples of a batch whose numbers are compared: bound on time and memory
NOTHING: dict[str, Any] = {"why": "", "rule": "", "suspects": [], "hidden": 0, "ordinary": []}
Rows = Callable[[Batch], Mapping[Any, Mapping[str, Any]]]  # the rows of a batch that are there, by id


def read(run: Run, case: Case, path: Path, looked: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """``{"data", "kind", "tokenizer", "notes", "why", "rule", "suspects", "hidden", "ordinary"}``. `looked`: what `--data` found.

    Raises ForensicsError where the data cannot be opened.
    """
    data, vocabulary, notes = opened(run, path)
    found = suspects_beside(run, case, rows_by_id(data), vocabulary, (looked or {}).get("odd") or ())
    return {"data": path.name, "kind": data.kind, "tokenizer": vocabulary.source if vocabulary else "", "notes": notes, **found}


def opened(run: Run, path: Path) -> tuple[DataSet, Vocabulary | None, list[str]]:
    """The data, a tokenizer that lies beside them or beside the run, and what could not be read of such."""
    try:
        data = data_sets.open_data(path, inspect_samples.block_of(run))
    except (Unreadable, OSError) as e:
        raise inspect_samples.unusable(e) from e
    return data, *tokenizer(run, path)


def tokenizer(run: Run, path: Path) -> tuple[Vocabulary | None, list[str]]:
    """One that lies beside some file or in some folder, in the folder above that, or beside the run."""
    beside = [path, path.parent] if path.is_dir() else [path.parent]
    root = Path(run.root)
    return token_pieces.beside(dict.fromkeys([*beside, root if root.is_dir() else root.parent]))


def rows_by_id(data: DataSet) -> Rows:
    known = replace(data, ids=cache(data.ids))

    def get(batch: Batch) -> dict[Any, Mapping[str, Any]]:
        places = inspect_samples.rows_of(known, batch.samples[:COMPARED])
        return dict(zip(places, data.get(list(places.values())), strict=True))

    return get


def suspects_beside(run: Run, case: Case, rows: Rows, vocabulary: Vocabulary | None, odd: Sequence[Any] = ()) -> dict[str, Any]:
    """The suspect batches of a case whose samples are known, beside ordinary ones."""
    suspects = chosen_batches.suspects(run, case, odd)
    if not suspects or not suspects[0].samples:
        return NOTHING | {
            "why": "The samples of the suspect batches are not known." if suspects else "No batch is suspect: nothing to show."
        }
    shown = [b for b in suspects if b.samples][: chosen_batches.SUSPECTS]
    others, rule = chosen_batches.ordinary(run, case.findings, suspects)
    return beside(shown, others, rows, vocabulary, odd) | {"rule": rule, "hidden": len(suspects) - len(shown)}


def beside(
    suspects: Sequence[Batch], ordinary: Sequence[Batch], rows: Rows, vocabulary: Vocabulary | None, odd: Sequence[Any] = ()
) -> dict[str, Any]:
    """The content of batches, from any source of rows; the numbers of the suspects beside those of all ordinary ones."""
    found: dict[str, Any] = NOTHING | {"suspects": [], "ordinary": []}
    usual: column_numbers.Numbers = {}
    for b in ordinary:
        told, numbers = _batch(b, rows, vocabulary, (), BESIDE)
        found["ordinary"].append(told)
        for name, values in numbers.items():
            usual.setdefault(name, []).extend(values)
    for b in suspects:
        told, numbers = _batch(b, rows, vocabulary, odd)
        found["suspects"].append(told | {"columns": column_numbers.beside(numbers, usual)})
    if not any(b["samples"] for b in found["suspects"]):
        return NOTHING | {"why": found["suspects"][0]["why"]}
    return found


def _batch(
    b: Batch, rows: Rows, vocabulary: Vocabulary | None, odd: Sequence[Any], most: int = SHOWN
) -> tuple[dict[str, Any], column_numbers.Numbers]:
    told: dict[str, Any] = {
        "step": b.step,
        "how": b.how,
        "findings": list(b.findings),
        "count": b.count,
        "samples": [],
        "why": "",
        "columns": [],
    }
    try:
        known = rows(b) if b.samples else {}
    except (Unreadable, OSError) as e:
        return told | {"why": f"The samples of step {b.step} cannot be read: {e}."}, {}
    if not known and not b.samples:
        return told, {}
    if not known:
        return told | {"why": f"None of the {b.count} samples of step {b.step} is a row of these data."}, {}
    marked = set(odd)
    for name in list(known)[:most]:
        parts = sample_parts.parts(known[name], vocabulary)
        parts["cells"] = [
            c for c in parts["cells"] if str(c[1]) != str(name) or not (NAMES.match(c[0]) or c[0] == "ids")
        ]  # it is the heading
        told["samples"].append({"id": sample_parts.cell(name), "odd": name in marked, **parts})
    return told, column_numbers.gathered(list(known.values()))


def of_step(run: Run, path: Path, step: int, samples: Sequence[Any]) -> dict[str, Any]:
    """The samples of one step alone, for `forensics batch`."""
    data, vocabulary, notes = opened(run, path)
    if not samples:
        notes = [*notes, "The samples of the step are not known."]
    told, _ = _batch(Batch(step, 0, tuple(samples), len(samples), ""), rows_by_id(data), vocabulary, ())
    return {"data": path.name, "kind": data.kind, "tokenizer": vocabulary.source if vocabulary else "", "notes": notes, **told}
