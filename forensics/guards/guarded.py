"""What would have caught it: the guards of a run, the best of them, and its callback file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from forensics.case import Finding
from forensics.errors import ForensicsError
from forensics.guards import callback_files
from forensics.guards.backtest import Backtest, backtests, harms
from parsers.tables import Run


@dataclass(frozen=True)
class Guarded:
    """The live guards whose metric was logged, tried on one run: ``rows`` has the best first, ``harms`` what some guard is there for."""

    run: str
    rows: tuple[Backtest, ...]
    harms: dict[str, str]  # what some guard is there for, in step order: id of the finding -> its title

    @property
    def best(self) -> Backtest | None:
        """The guard that would have caught the harm with the fewest false alarms, the earliest; None where none would have."""
        return self.rows[0] if self.rows and self.rows[0].fired is not None else None

    def row(self, guard: str | None = None) -> Backtest:
        """The guard of that name, or the best. Raises ForensicsError where there is none."""
        known = ", ".join(r.guard for r in self.rows)
        found = self.best if guard is None else next((r for r in self.rows if r.guard == guard), None)
        if found is None and guard is None:
            hint = f"Name one with --guard: {known}." if known else "No metric that a guard looks at was logged."
            raise ForensicsError(f"there is no best guard: {self.says()}", hint)
        if found is None:
            raise ForensicsError(f"no guard {guard} on this run", f"Those whose metric was logged: {known or 'none'}.")
        return found

    def says(self) -> str:
        """The best guard in a sentence, or why there is none."""
        if self.best is not None:
            return f"{self.best.guard} ({self.best.rule}): {self.best.says(self.harms[self.best.harm or ''])}"
        if not self.harms:
            return "nothing happened in this run that a guard is there for"
        return f"none of {len(self.rows)} guards would have caught the harm ({next(iter(self.harms.values()))})"

    def emit(self, framework: str, guard: str | None = None) -> str:
        """The callback file of the best guard, or of the one named, for hf, lightning, torch or python."""
        row = self.row(guard)
        return callback_files.text(row, framework, self.run, self.harms.get(row.harm or "", ""))

    def to_json(self) -> dict[str, Any]:
        """What `forensics guard --json` prints."""
        return {"best": self.best.guard if self.best else None, "says": self.says(), "rows": [asdict(r) for r in self.rows]}


def guarded(run: Run, findings: Sequence[Finding[Any]]) -> Guarded:
    return Guarded(run.id, tuple(backtests(run, findings)), {f.id: f.title for f in harms(findings)})
