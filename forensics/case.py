"""The case: everything the analysis concluded about one run, as plain data. ``to_json`` turns it into the ``case.json`` that docs/case.md
describes; a report is a pure function of that document. Weights are in decibans (+10: ten times likelier), times in UTC.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic

from forensics.case_parts.finding_kinds import kind_of
from forensics.certainty import of_cause
from forensics.published import incidents
from parsers.secrets import mask_shapes, names
from parsers.tables import DATED

SCHEMA = 1
Labels = tuple[int | None, int | None]
HELD = "held"  # the part of a clue that keeps a probability within the rules, whatever the evidence weighs


@dataclass(frozen=True)
class Evidence:
    """One way a claim is shown; ``forensics.evidence`` builds the three kinds and says what ``data`` holds."""

    kind: str  # series | table | text
    title: str
    data: dict[str, Any]
    where: str = ""  # "log.jsonl line 1501"


@dataclass(frozen=True)
class BaseFacts:
    """What a detector measured, for the causes and for case.json: each detector has its own ``Facts``.

    A field with a default is left out of the case where it is that: it does not apply. A name that Python keeps for itself
    ends in an underscore, which the case leaves out.
    """

    @classmethod
    def detector(cls) -> str:
        """The id of the detector whose module has these facts."""
        return cls.__module__.rpartition(".")[2]

    def to_json(self) -> dict[str, Any]:
        known = ((f, getattr(self, f.name)) for f in dataclasses.fields(self))
        return {f.name.rstrip("_"): value for f, value in known if f.default is dataclasses.MISSING or value != f.default}


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    F = TypeVar("F", covariant=True, default=Any)
else:
    from typing import TypeVar

    F = TypeVar("F", covariant=True)


@dataclass(frozen=True)
class Finding(Generic[F]):
    """A symptom. The id carries the step: loss_spike-1500."""

    id: str
    kind: str  # the detector's id
    title: str  # one plain sentence with the numbers in it
    first_step: int | None
    last_step: int | None
    severity: str  # info | warning | critical
    evidence: tuple[Evidence, ...] = ()
    facts: F = field(default_factory=dict)  # type: ignore[assignment]  # the detector's Facts; other packages may give a dict
    times: tuple[float | None, float | None] = (None, None)  # wall clock of first and last step, seconds since 1970 UTC
    labels: Labels | None = None  # first and last step as the log prints them, where that is not what the tables count


@dataclass(frozen=True)
class Clue:
    """For (+) or against (-) a cause, in decibans; the findings it rests on are links on the page."""

    text: str
    weight: float
    findings: tuple[str, ...] = ()
    part: str = "log"  # log | replay | held


@dataclass(frozen=True)
class Hypothesis:
    """A cause with its clues, what would settle it, and what to do about it (fast first, invasive last)."""

    id: str
    title: str
    clues: tuple[Clue, ...]
    settle: str = ""
    interventions: tuple[str, ...] = ()
    steps: tuple[int | None, int | None] = (None, None)
    probability: float = 0.0
    labels: Labels | None = None  # of the steps, as in a finding

    @property
    def score(self) -> float:
        return sum(c.weight for c in self.clues)


@dataclass(frozen=True)
class Check:
    """What became of one detector, or of a cause that broke: fired (with its rule), clear (with the smallest effect it could
    have seen), cannot_tell or error. ``needs``: what one that cannot tell looks at, as canonical metric names or artefacts
    (``checkpoints``, ``config``, ``wall clock`` ...)."""

    id: str
    status: str
    note: str = ""
    smallest_effect: str = ""
    rule: str = ""
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """The whole answer. The plain dicts (run, spikes, batches, sources ...) have the keys of docs/case.md."""

    tool: dict[str, Any]
    run: dict[str, Any]
    verdict: str  # healthy | unhealthy | inconclusive
    answer: str
    hypotheses: tuple[Hypothesis, ...]
    spikes: tuple[dict[str, Any], ...]
    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]
    blind_spots: tuple[dict[str, str], ...]
    sources: tuple[dict[str, Any], ...]
    gaps: tuple[dict[str, Any], ...]
    timeline: dict[str, Any]
    culprits: tuple[dict[str, Any], ...] = ()
    replay: dict[str, Any] | None = None
    guards: dict[str, Any] | None = None
    pictures: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The case.json document: only JSON types, NaN and infinities as strings, keys in a fixed order."""
        document = {
            "schema": SCHEMA,
            "tool": self.tool,
            "run": self.run,
            "verdict": self.verdict,
            "answer": self.answer,
            "hypotheses": [_hypothesis(h, rank) for rank, h in enumerate(self.hypotheses, 1)],
            "spikes": list(self.spikes),
            "findings": [_finding(f) for f in self.findings],
            "checks": list(self.checks),
            "culprits": list(self.culprits),
            "replay": self.replay,
            "guards": self.guards,
            "blind_spots": list(self.blind_spots),
            "sources": list(self.sources),
            "gaps": list(self.gaps),
            "timeline": self.timeline,
            "pictures": self.pictures,
        }
        return dict(jsonable(document))

    def to_html(self) -> str:
        """The page that `forensics analyze` writes."""
        from forensics import notebook

        return notebook.page(self.to_json())

    def __repr__(self) -> str:
        return f"<Case {self.run.get('id')}: {self.verdict}. {self.answer}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the page."""
        from forensics import notebook

        return notebook.frame(self.to_json())


def _hypothesis(h: Hypothesis, rank: int) -> dict[str, Any]:
    return {
        "id": h.id,
        "title": h.title,
        "rank": rank,
        "probability": round(h.probability, 6),
        "certainty": of_cause(h.title, h.probability, rank == 1),
        "score": round(h.score, 2),
        **_places(h.steps, h.labels),
        "clues": list(h.clues),
        "settle": h.settle,
        "interventions": list(h.interventions),
        "seen_before": [i.to_json() for i in incidents.of_cause(h.id)],
    }


def _finding(f: Finding) -> dict[str, Any]:
    return {
        "id": f.id,
        "kind": kind_of(f.kind),
        "title": f.title,
        **_places((f.first_step, f.last_step), f.labels),
        "severity": f.severity,
        "times": [utc(t) for t in f.times],
        "facts": f.facts,
        "evidence": list(f.evidence),
    }


def _places(steps: Labels, labels: Labels | None) -> dict[str, list[int | None]]:
    """``steps`` in the labels that the log prints, and where the tables count something else ``axis_steps`` in that."""
    return {"steps": list(steps)} if labels is None else {"steps": list(labels), "axis_steps": list(steps)}


def utc(seconds: float | None) -> str | None:
    """Seconds since 1970 as '2026-11-21T02:44:14Z'; None for no time, one without a date, or one that no calendar has."""
    if seconds is None or not math.isfinite(seconds) or not DATED <= seconds < 253402300799:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def number(value: float) -> float | str:
    """A float as JSON can hold it: NaN and infinities become the strings that the contract names."""
    return value if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


_shown = lru_cache(maxsize=256)(names)  # rows have the same keys


def jsonable(x: Any) -> Any:
    """Recursively: dataclasses and tuples to JSON types, numpy scalars to Python ones, non-finite floats to strings."""
    if isinstance(x, (list, tuple)):
        return [v if type(v) is int or (type(v) is float and -math.inf < v < math.inf) else jsonable(v) for v in x]  # curves are long
    if isinstance(x, str):
        return mask_shapes(x)  # whatever way it came: a path that was given, a name, an error's text
    if x is None or isinstance(x, (bool, int)):
        return x
    if isinstance(x, float):
        return number(x)
    if isinstance(x, dict):
        shown = _shown(tuple(map(str, x)))  # no entry is lost where two keys differ only in a secret
        return {shown.get(str(k), str(k)): jsonable(v) for k, v in x.items()}
    if isinstance(x, BaseFacts):
        return jsonable(x.to_json())
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return {f.name: jsonable(getattr(x, f.name)) for f in dataclasses.fields(x)}
    if hasattr(x, "tolist"):  # numpy scalars and arrays
        return jsonable(x.tolist())
    return str(x)
