"""What Python users hold: the tables of a run as frames, and the run that ``forensics.read`` gives."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from forensics.errors import ForensicsError
from forensics.run.series import names, series
from parsers import secrets, tables

if TYPE_CHECKING:
    import pandas
    import polars


@dataclass(frozen=True)
class Frame:
    """One table, in the form that you work with. ``arrow`` is the table itself, not a copy; docs/tables.md has its columns."""

    name: str
    arrow: pa.Table

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def to_polars(self) -> polars.DataFrame:
        """As a polars.DataFrame: NaN stays NaN, a missing value is null, repeated texts are categorical."""
        import polars

        return polars.DataFrame(self.arrow)

    def to_pandas(self) -> pandas.DataFrame:
        """As a pandas.DataFrame: steps with gaps stay whole numbers (Int64), repeated texts are categorical.

        Raises ForensicsError where pandas is not installed.
        """
        try:
            import pandas
        except ImportError as e:
            raise ForensicsError(
                "pandas is not installed, and the base install does without it",
                "Install pandas, or take .to_polars(), or the pyarrow.Table in .arrow.",
            ) from e
        whole = {pa.int64(): pandas.Int64Dtype(), pa.int32(): pandas.Int32Dtype()}
        return self.arrow.to_pandas(types_mapper=whole.get)

    def __repr__(self) -> str:
        return f"<Frame {self.name}: {len(self):,} rows, {', '.join(self.arrow.column_names)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the first and last rows."""
        return self.to_polars()._repr_html_()


class Run(tables.Run):
    """Everything that could be read of one run. ``tables["metrics"]`` is a pyarrow.Table; ``metrics`` and its neighbours are the
    same tables as frames. ``id``, ``path``, ``framework``, ``attempts``, ``sources``, ``gaps`` (what could not be read) and ``siblings``
    (the other runs of its place) are plain data."""

    @classmethod
    def of(cls, run: tables.Run) -> Run:
        """The same run, tables not copied."""
        made = cls(**{f.name: getattr(run, f.name) for f in fields(run)})
        made.group = [made if r is run else r for r in run.group]
        return made

    @property
    def metrics(self) -> Frame:
        """step, tag as logged, canonical name, value, time, rank, attempt, and the place each value came from."""
        return self._frame("metrics")

    @property
    def events(self) -> Frame:
        """Messages, errors, texts: step, time, kind, level, text."""
        return self._frame("events")

    @property
    def config(self) -> Frame:
        """Settings: attempt, key, value as JSON text."""
        return self._frame("config")

    @property
    def batches(self) -> Frame:
        """Which samples were in which batch, as recorded: step, rank, position, sample, shard."""
        return self._frame("batches")

    @property
    def checkpoints(self) -> Frame:
        """Checkpoint files: step, path, format, bytes, whether complete."""
        return self._frame("checkpoints")

    @property
    def tensors(self) -> Frame:
        """What checkpoints hold: name, role, shape, norm, mean, non-finite values."""
        return self._frame("tensors")

    @property
    def histograms(self) -> Frame:
        """Logged distributions: step, tag, mean, standard deviation, percentiles."""
        return self._frame("histograms")

    def _frame(self, name: str) -> Frame:
        return Frame(name, self.tables[name])

    def outline(self) -> dict[str, Any]:
        """``{"id", "path", "framework", "metrics", "tables", "files", "gaps"}``: what was read, as plain data and without a judgement."""
        logged = [(name, s) for name in names(self) if (s := series(self, name)) is not None]
        return {
            "id": self.id,
            "path": secrets.mask_shapes(self.path),
            "framework": self.framework,
            "metrics": [
                {"name": n, "tag": s.tag, "points": len(s), "steps": s.step[[0, -1]].tolist(), "values": s.value[[0, -1]].tolist()}
                for n, s in logged
            ],
            "tables": {name: table.num_rows for name, table in self.tables.items() if table.num_rows},
            "files": [{"path": s.path, "format": s.format, "records": s.records} for s in self.sources if s.claimed],
            "gaps": [{"path": g.path, "at": g.at, "what": g.what} for g in self.gaps],
        }

    def __repr__(self) -> str:
        rows = ", ".join(f"{table.num_rows:,} {name}" for name, table in self.tables.items() if table.num_rows)
        return f"<Run {self.id}: {rows or 'no rows'}; {len(self.gaps)} gaps>"

    def _repr_html_(self) -> str:
        """What a notebook shows: what was read, without a judgement."""
        from forensics import notebook

        return notebook.run(self.outline())
