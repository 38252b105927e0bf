"""The folklore table is whole, and every id in it names something that there is."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from forensics import cli
from forensics.case_parts.blind_spots import ASKED, WOULD_TELL
from forensics.causes.files import causes
from forensics.experiments import EXPERIMENTS
from forensics.replays import arms, extra_arms
from forensics.rules import detectors, id_of
from forensics.run.facts import WORKED_OUT
from forensics.signs.sign import looks
from forensics.source.all_looks import LOOKS

DOCS = Path(__file__).resolve().parent.parent / "docs"
with (DOCS / "folklore.csv").open(newline="", encoding="utf-8") as f:
    ROWS = list(csv.DictReader(f))
CLAIMS = {"T": 53, "S": 62, "D": 54, "B": 18, "G": 39}  # of each document
ALIVE = {
    "detector": {id_of(d) for d in detectors()},
    "sign": set(looks()),
    "cause": set(causes()),
    "do": {c.id for c in causes().values() if c.interventions},
    "blind": {n.replace(" ", "_") for n in (*WOULD_TELL, *ASKED)},
    "arm": {n.replace(" ", "_") for n in (*arms.GENERAL, *extra_arms.ALL)},
    "experiment": {e.id for e in EXPERIMENTS},
    "verb": set(cli.main.commands),
    "option": {o for command in cli.main.commands.values() for p in command.params for o in p.opts},
    "table": {"incidents", "recipes"},
    "fact": {n.replace(" ", "_") for n in WORKED_OUT},
    "look": set(LOOKS),
    "page": {p.name for p in DOCS.glob("*.md")},
}


def test_every_claim_of_every_document_has_one_row() -> None:
    assert [r["id"] for r in ROWS] == [f"{letter}{n}" for letter, many in CLAIMS.items() for n in range(1, many + 1)]
    assert all(r["claim"] for r in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["id"])
def test_a_row_is_alive_and_says_what_its_state_asks_for(row: dict[str, str]) -> None:
    named = [i.partition(":") for i in row["ids"].split()]
    assert [f"{kind}:{name}" for kind, _, name in named if name not in ALIVE[kind]] == []
    assert row["state"] in ("served", "partly", "missing", "not decidable")
    assert bool(named) == (row["state"] in ("served", "partly"))
    assert row["state"] == "served" or row["note"].endswith("."), "says what is left, or why nothing can be"


def test_it_gets_no_worse() -> None:
    count = Counter(r["state"] for r in ROWS)
    assert count["served"] >= 170 and count["partly"] <= 21 and not count["missing"], count
