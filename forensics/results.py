"""What ``forensics.compare`` and ``forensics.audit`` give back in Python."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from forensics.frames import Frame

SHOWN = ["id", "verdict", "top_cause", "probability", "first_bad_step", "steps", "status"]  # of the columns of an audit, in a cell


@dataclass(frozen=True)
class Comparison:
    """Two runs beside each other. ``document`` has the keys that docs/audit.md describes."""

    document: dict[str, Any]

    @property
    def answer(self) -> str:
        """One sentence: where they part, and the most suspect difference."""
        return str(self.document["answer"])

    def to_json(self) -> dict[str, Any]:
        """What `forensics compare --json` writes."""
        return self.document

    def to_html(self) -> str:
        """The page that `forensics compare` writes."""
        from forensics import notebook

        return notebook.comparison_page(self.document)

    def __repr__(self) -> str:
        a, b = (r["id"] for r in self.document["runs"])
        return f"<Comparison of {a} and {b}. {self.answer}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the page."""
        from forensics import notebook

        return notebook.comparison_frame(self.document)


@dataclass(frozen=True)
class Audit:
    """Many runs. ``out`` is the folder or URL with the audit's files, ``document`` has the keys of its audit.json (docs/audit.md)."""

    out: str
    document: dict[str, Any]

    @property
    def verdicts(self) -> dict[str, int]:
        """How many runs are unhealthy, inconclusive, healthy."""
        return dict(self.document["verdicts"])

    @property
    def rows(self) -> Frame:
        """One row a run, with the columns of audit.parquet."""
        import pyarrow.parquet as pq

        from forensics.audits import storage

        return Frame("audit", pq.read_table(io.BytesIO(storage.read(self.out, "audit.parquet") or b"")))

    def to_json(self) -> dict[str, Any]:
        """What the runs share: the content of audit.json."""
        return self.document

    def __repr__(self) -> str:
        return f"<Audit {self.out}: {', '.join(f'{n} {verdict}' for verdict, n in self.verdicts.items())}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the table of runs; the audit's page is in its folder."""
        return Frame("audit", self.rows.arrow.select(SHOWN))._repr_html_()
