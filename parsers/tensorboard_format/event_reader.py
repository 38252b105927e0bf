"""Events into tables: loops (`loop_tables`), other records by the thousand (`vectorized`), what is odd alone (`one_event`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parsers import arrow
from parsers.tables import Gap, Rows, record_batch
from parsers.tensorboard_format import histograms, hparams_plugin, loop_tables, tag_names, vectorized, written_settings
from parsers.tensorboard_format import one_event as single
from parsers.tensorboard_format.tfrecord import Records
from parsers.tensorboard_format.tfrecord_chain import HEADER

_CHUNK = 1 << 14  # records decoded together: their columns fit the second-level cache
_BATCH = 1 << 17  # rows in a record batch, or a few more
_TYPES = {"record": "i8", "step": "i8", "tag": "i4"}
_HISTOGRAM_COLUMNS = ("count", "min", "max", "mean", "std", *histograms.QUANTILES)

Columns = vectorized.Columns


class Reader:
    """What is known between windows: the names, and what was only counted."""

    def __init__(self) -> None:
        self.names = tag_names.Names()
        self.counts: Counter[str] = Counter()
        self._shapes: loop_tables.Shapes = {}
        self._rows = Rows()
        self._piles: dict[str, list[Columns]] = {"metrics": [], "histograms": []}
        self._waiting = 0  # rows in both

    def window(self, records: Records) -> Iterator[pa.RecordBatch | Gap]:
        """The tables of these records, and a Gap for each that is no event."""
        rows, loop = np.arange(len(records.start)), loop_tables.find(records, self._shapes)
        if loop is None:
            yield from self._records(records, rows)
        else:
            yield from self._records(records, rows[: loop.first])
            yield from self._records(records, loop.others())
            metrics, refused = loop_tables.decode(records, loop, self.names)
            self._keep("metrics", metrics, records.at())
            yield from self._records(records, refused)
            yield from self._records(records, rows[loop.end :])
        if self._waiting >= _BATCH or self._rows.full():
            yield from self.flush()

    def _records(self, records: Records, rows: npt.NDArray[np.int64]) -> Iterator[Gap]:
        """These records, many at a time; what is odd about one is left to be read alone."""
        for some in (rows[first : first + _CHUNK] for first in range(0, len(rows), _CHUNK)):
            places = records.start[some] + (records.base - HEADER)
            found = vectorized.decode(records.data, records.start[some], records.length[some], self.names)
            self.counts.update(found.counts)
            self._keep("metrics", found.metrics, places)
            self._keep("histograms", found.histograms, places)
            if len(found.texts["record"]):
                self._texts(records, found.texts, places)
            for i in found.odd.tolist():
                yield from self._alone(records, int(some[i]), int(places[i]))

    def _keep(self, table: str, columns: Columns, places: npt.NDArray[np.int64]) -> None:
        """``places`` are those of the records that the columns' ``record`` counts."""
        columns["at"] = places[columns.pop("record")]
        if len(columns["at"]):
            self._piles[table].append(columns)
            self._waiting += len(columns["at"])

    def _texts(self, records: Records, found: Columns, at: npt.NDArray[np.int64]) -> None:
        view, tags = records.data.data, [single.text(t) for t in self.names.tags.values]
        tag, start, size, steps, times = (found[n].tolist() for n in ("tag", "body_at", "body_size", "step", "time"))
        said = [(tags[t], single.text(view[s : s + n])) for t, s, n in zip(tag, start, size, strict=True)]
        places = at[found["record"]].tolist()
        self._rows.texts("text", [f"{name}: {text}" for name, text in said], steps, times, places)
        for (name, text), place in zip(said, places, strict=True):
            self._settings(name, text, place)

    def _settings(self, tag: str, text: str, at: int) -> None:
        for key, setting in written_settings.written(tag, text):
            self._rows.config(key, setting, at=at)

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Everything read so far."""
        for table, pile in self._piles.items():
            if pile:
                columns = {name: np.concatenate([piece[name] for piece in pile]) for name in pile[0]}
                pile.clear()
                yield self._batch(table, columns)
        self._waiting = 0
        yield from self._rows.flush()

    def _batch(self, table: str, columns: Columns) -> pa.RecordBatch:
        at = columns["at"]
        if (at[1:] < at[:-1]).any():  # those read alone come between the others
            order = np.argsort(at, kind="stable")
            columns = {name: column[order] for name, column in columns.items()}
        tags = arrow.coded(columns.pop("tag"), [single.text(tag) for tag in self.names.tags.values])
        return record_batch(table, {name: arrow.numbers(column) for name, column in columns.items()} | {"tag": tags})

    # ---------------------------------------------------------------------------------------- records one by one

    def _alone(self, records: Records, i: int, at: int) -> Iterator[Gap]:
        """A record that is not as most are. Rows of one that is no event are not kept."""
        view, start = records.data.data, int(records.start[i])
        try:
            event = single.event(view, start, start + int(records.length[i]))
            found = [self._value(view, value) for value in event.values]
            self._other(view, event, at)
        except ValueError:
            yield Gap(f"byte {at}", "record whose checksums hold but which is no event message", 1)
            return
        for value, (what, content) in zip(event.values, found, strict=True):
            if what == "metric":
                self._row("metrics", at, event, value, {"value": content})
            elif what == "histogram":
                self._row("histograms", at, event, value, dict.fromkeys(_HISTOGRAM_COLUMNS, np.nan) | content)
            elif what == "text":
                self._said("text", f"{single.text(value.tag)}: {content}", event, at)
                self._settings(single.text(value.tag), content, at)
            elif what == "hparams":
                config, status = content
                for key, setting in config.items():
                    self._rows.config(key, setting, at=at)
                if status:
                    self._said("session", f"hparams session: {status}", event, at)
            else:
                self.counts[what] += 1

    def _row(self, table: str, at: int, event: single.Event, value: single.Value, content: dict[str, Any]) -> None:
        row = content | {"record": 0, "step": event.step, "tag": self.names.tags.code(value.tag), "time": event.wall}
        self._keep(table, {name: np.array([x], _TYPES.get(name, np.float64)) for name, x in row.items()}, np.array([at]))

    def _said(self, kind: str, text: str, event: single.Event, at: int, level: str = "info") -> None:
        self._rows.event(kind, text, level=level, step=event.step, time=event.wall, at=at)

    def _other(self, view: memoryview, event: single.Event, at: int) -> None:
        """Events that are no summary."""
        if event.what in (single.GRAPH, single.META_GRAPH):
            self.counts["graph"] += 1
        elif event.what == single.RUN_METADATA:
            self.counts["profile"] += 1
        elif event.what == single.SESSION:
            self._said("session", single.session(view, event.parts), event, at)
        elif event.what == single.LOG:
            level, said = single.log(view, event.parts)
            self._said("log", said, event, at, level)

    def _value(self, view: memoryview, value: single.Value) -> tuple[str, Any]:
        """-> metric, histogram, text or hparams and its content; or the noun under which it is counted."""
        tag = self.names.tags.code(value.tag)
        if value.plugin:
            self.names.plugin.setdefault(tag, value.plugin)
        plugin = self.names.plugin.get(tag, "")
        if value.kind == single.SIMPLE:
            return "metric", value.number
        if value.kind == single.HISTOGRAM:
            return "histogram", _known_histogram(*single.histogram(view, value.parts))
        if value.kind in (single.IMAGE, single.AUDIO):
            return "image" if value.kind == single.IMAGE else "audio clip", None
        if plugin == "hparams":
            return "hparams", hparams_plugin.hparams(view, value.content)
        if value.kind != single.TENSOR:
            return tag_names.noun(plugin) if plugin else "value without content", None
        tensor = single.tensor(view, value.parts)
        if plugin == "text" and tensor.dtype == single.STRING:
            return "text", "\n".join(tensor.strings)
        if plugin == "histograms" and tensor.numbers is not None and len(tensor.shape) == 2 and tensor.shape[1] == 3:
            return "histogram", _bucketed(tensor.numbers)
        if plugin not in tag_names.NOUNS and (number := tensor.scalar()) is not None:
            return "metric", number
        return tag_names.noun(plugin) if plugin not in ("", "scalars") else "tensor", None


def _known_histogram(known: list[float], edges: single.Floats, weights: single.Floats) -> dict[str, Any]:
    """A HistogramProto that was read alone -> its row."""
    count = min(len(edges), len(weights))
    mean, std = histograms.moments(*(np.array(x) for x in known[2:]))
    facts = {"min": known[0], "max": known[1], "count": known[2], "mean": float(mean), "std": float(std)}
    return histograms.one(np.append(-np.inf, edges)[:count], edges[:count], weights[:count], **facts)


def _bucketed(numbers: npt.NDArray[Any]) -> dict[str, Any]:
    """A TF2 histogram, rows of (left edge, right edge, count) -> its row."""
    buckets = numbers.astype(np.float64)[: len(numbers) // 3 * 3].reshape(-1, 3)
    return histograms.one(buckets[:, 0], buckets[:, 1], buckets[:, 2])
