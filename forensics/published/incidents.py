"""Recorded incidents of public trainings: what was seen, what the team did, and whether it helped.

The facts come from logbooks, reports and issues, each row with its source; the sentences are ours. A row names the causes of our list
that the team's account fits, and the signs or detectors that speak to it (`speaks`), or why nothing in a log does (`silent`).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

MOST = 3  # unit: incidents that a cause quotes
HELPED = {"yes": "it helped", "no": "it did not help", "partly": "it helped in part", "open": "whether it helped is not recorded"}


@dataclass(frozen=True)
class Incident:
    """A row of incidents.csv; what is not recorded is empty."""

    run: str
    year: str
    at: str  # a step, or how the source counts
    causes: tuple[str, ...]
    speaks: tuple[str, ...]
    silent: str
    what: str
    did: str
    outcome: str
    helped: str  # a key of HELPED
    source: str
    shown: str  # quoted: the source was read and a passage of it found again; read: read in a stored copy or an excerpt of it

    @property
    def documented(self) -> int:
        """How much of it is known: its passage, its step, its year, what came of it."""
        return 2 * (self.shown == "quoted") + 2 * (self.helped != "open") + bool(self.at) + bool(self.year)

    @property
    def place(self) -> str:
        """'at step 4000', 'on day 16': where in the training it was."""
        return f"at step {self.at}" if self.at[:1].isdigit() else f"at {self.at}" if self.at else ""

    @property
    def sentence(self) -> str:
        """'GLM-130B 2022, at step 4000: two nodes break down. Done: ... Then: training continued (it helped).'"""
        head = ", ".join(filter(None, (f"{self.run} {self.year}".strip(), self.place)))
        return f"{head}: {self.what}. Done: {self.did}. Then: {self.outcome} ({HELPED[self.helped]})."

    def to_json(self) -> dict[str, str]:
        """As case.json tells it."""
        return {"run": self.run, "year": self.year, "says": self.sentence, "helped": self.helped, "source": self.source}


@cache
def incidents() -> tuple[Incident, ...]:
    """All of them, in the order of their sources."""
    text = resources.files("forensics.published").joinpath("incidents.csv").read_text("utf-8")
    rows = csv.DictReader(text.splitlines())
    return tuple(_incident(r) for r in rows)


def _incident(row: dict[str, str]) -> Incident:
    lists: dict[str, Any] = {k: tuple(row[k].split()) for k in ("causes", "speaks")}
    return Incident(**row | lists)


@cache
def of_cause(cause: str) -> tuple[Incident, ...]:
    """At most three that fit a cause, best documented first; of one training a second one only where others are too few."""
    fit = sorted((i for i in incidents() if cause in i.causes), key=lambda i: -i.documented)
    first: dict[str, Incident] = {}
    for i in fit:
        first.setdefault(i.run.split()[0], i)
    chosen = [*first.values(), *(i for i in fit if i not in first.values())][:MOST]
    return tuple(sorted(chosen, key=lambda i: -i.documented))
