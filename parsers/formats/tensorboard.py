"""TensorBoard event files (``events.out.tfevents.*``): scalars, histograms, text, hyperparameters.

A TFRecord file (:mod:`parsers.tensorboard_format.tfrecord`) of ``Event`` messages (TensorFlow's ``event.proto``). What is odd about it:

* A scalar is a ``simple_value`` (TF1, torch, tensorboardX) or a tensor without dimensions (TF2) of any number type, in
  ``tensor_content`` or in one of ten typed lists.
* What a tensor means is said by its plugin, and only the first record of a tag has to name it
  (tensorboard's ``data_compat`` and ``event_accumulator``).
* A restarted writer goes back in steps; TensorBoard then hides what came before ("purges"). Here everything stays, in
  file order: the abandoned branch is evidence.
* A file without records, or cut in its last one, is what a crash or a run still going leaves.

Images, audio, graphs and the data of other plugins are counted, not decoded. ``at`` is the byte where a record begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from parsers.tables import Gap, Note, Rows, record_batch

if TYPE_CHECKING:
    from parsers.tensorboard_format import one_event
    from parsers.tensorboard_format.tag_names import Names
    from parsers.tensorboard_format.tfrecord import Records
    from parsers.tensorboard_format.vectorized import Columns

AT = "byte"
_EVENT_KEYS = frozenset(b"\x09\x10\x1a\x22\x2a\x32\x3a\x42\x4a\x52")  # the first byte of an Event's first field
_CHUNK = 1 << 14  # records decoded together: their columns fit the second-level cache
_BATCH = 1 << 17  # rows in a record batch, or a few more


def claims(path: Path, head: bytes) -> bool:
    """An event by its framing and first byte (other TFRecords hold other messages), or no text and named so."""
    if len(head) > 12 and head[12] in _EVENT_KEYS and not any(head[5:8]):
        from parsers.tensorboard_format.tfrecord_chain import sound_header

        if sound_header(head):
            return True
    return "tfevents" in path.name and (not head or 0 in head or len(head) < 12)


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    """Tables metrics, histograms, events and config of one file."""
    from parsers.tensorboard_format import tag_names, tfrecord

    reader = Reader()
    try:
        for piece in tfrecord.read(path):
            if isinstance(piece, Gap):
                yield piece
            else:
                yield from reader.window(piece)
        yield from reader.flush()
    except OSError as error:
        yield Gap("byte 0", f"cannot be read: {error.strerror or error}", None)
    if note := tag_names.counted(reader.counts):
        yield Note(note)


def parse_many(paths: Sequence[Path]) -> list[list[pa.RecordBatch]] | None:
    """What ``parse`` yields for each of many small files; None where they have to be read one by one."""
    from parsers.tensorboard_format import small_files

    return small_files.parse(paths)


class Reader:
    """What is known between windows: the names, and what was only counted."""

    def __init__(self) -> None:
        from parsers.tensorboard_format.steady_stretch import Shapes
        from parsers.tensorboard_format.tag_names import Names

        self.names: Names = Names()
        self._shapes = Shapes()
        self.counts: Counter[str] = Counter()
        self._rows = Rows()
        self._metrics: list[Columns] = []
        self._histograms: list[Columns] = []
        self._waiting = 0  # rows in both

    def window(self, records: Records) -> Iterator[pa.RecordBatch | Gap]:
        """Stretches whose sizes repeat as tables, the records between them by the thousand."""
        import numpy as np

        from parsers.tensorboard_format import steady_stretch

        heads, data = records.heads(), records.data
        left = np.ones(len(heads), np.bool_)
        tables = [steady_stretch.look(data, stretch, records.bad, self._shapes) for stretch in records.stretches]
        for table in tables:
            first, end, whole = table.stretch.span(heads)
            if whole and table.is_whole():
                left[first:end] = False
            else:
                rows, turn, place = table.stretch.find(heads)
                left[rows] = ~(table.alike[turn] & np.isin(place, table.plain))
        yield from self._records(records, np.flatnonzero(left))  # first: they may say what a tag means
        for alike in steady_stretch.together(tables):
            metrics, refused = steady_stretch.decode(data, alike, self.names)
            metrics["at"] += records.base
            self._keep(metrics, self._metrics)
            for table in alike if len(refused) else ():
                rows, turn, place = table.stretch.find(heads)
                yield from self._records(records, rows[table.alike[turn] & np.isin(place, refused)])
        if self._waiting >= _BATCH or self._rows.full():
            yield from self.flush()

    def _records(self, records: Records, rows: Any) -> Iterator[Gap]:
        """These records, many at a time; what is odd about one is left to be read alone."""
        from parsers.tensorboard_format import vectorized

        places = records.at()
        for some in (rows[first : first + _CHUNK] for first in range(0, len(rows), _CHUNK)):
            start = records.start[some]
            found = vectorized.decode(records.data, start, records.length[some], self.names)
            self.counts.update(found.counts)
            at = places[some]
            for columns, pile in ((found.metrics, self._metrics), (found.histograms, self._histograms)):
                columns["at"] = at[columns.pop("record")]
                self._keep(columns, pile)
            if len(found.texts["record"]):
                self._texts(records, found.texts, at)
            if len(found.odd):
                yield from self._one_by_one(records, some[found.odd])

    def _keep(self, columns: Columns, pile: list[Columns]) -> None:
        if len(columns["at"]):
            pile.append(columns)
            self._waiting += len(columns["at"])

    def _texts(self, records: Records, found: Columns, at: Any) -> None:
        from parsers.tensorboard_format import one_event as single

        view, tags = records.data.data, [single.text(t) for t in self.names.tags.values]
        tag, start, size, steps, times = (found[n].tolist() for n in ("tag", "body_at", "body_size", "step", "time"))
        said = [f"{tags[t]}: {single.text(view[s : s + n])}" for t, s, n in zip(tag, start, size, strict=True)]
        self._rows.texts("text", said, steps, times, at[found["record"]].tolist())

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Everything read so far."""
        import numpy as np

        for table, pile in (("metrics", self._metrics), ("histograms", self._histograms)):
            if pile:
                whole = {name: np.concatenate([piece[name] for piece in pile]) for name in pile[0]}
                pile.clear()
                yield self._batch(table, whole)
        self._waiting = 0
        yield from self._rows.flush()

    def _batch(self, table: str, columns: Columns) -> pa.RecordBatch:
        import numpy as np

        at = columns["at"]
        if (at[1:] < at[:-1]).any():  # those read one by one come between the others
            order = np.argsort(at, kind="stable")
            columns = {name: column[order] for name, column in columns.items()}
        tags = pa.DictionaryArray.from_arrays(_arrow(columns.pop("tag")), self._tag_names())
        return record_batch(table, {name: _arrow(column) for name, column in columns.items()} | {"tag": tags})

    def _tag_names(self) -> pa.Array:
        """Tags by code. From buffers: ``pa.array`` imports pandas, which takes longer than a small file."""
        import numpy as np

        from parsers.tensorboard_format.one_event import text

        names = [text(tag).encode() for tag in self.names.tags.values]
        ends = np.cumsum([0, *map(len, names)], dtype=np.int32)
        return pa.StringArray.from_buffers(len(names), pa.py_buffer(ends), pa.py_buffer(b"".join(names)))

    # ---------------------------------------------------------------------------------------- records one by one

    def _one_by_one(self, records: Records, odd: Any) -> Iterator[Gap]:
        """What the lockstep left: every record alone. Rows of a record that is no event are not kept."""
        import numpy as np

        from parsers.tensorboard_format import one_event as single

        view = records.data.data
        metrics: list[tuple[int, int, int, float, float]] = []
        for i, at in zip(odd.tolist(), records.at()[odd].tolist(), strict=True):
            start = int(records.start[i])
            try:
                event = single.event(view, start, start + int(records.length[i]))
                found = [self._value(view, value) for value in event.values]
                self._other(view, event, at)
            except ValueError:
                yield Gap(f"byte {at}", "record whose checksums hold but which is no event message", 1)
                continue
            for value, (what, content) in zip(event.values, found, strict=True):
                tag = self.names.tags.code(value.tag)
                if what == "metric":
                    metrics.append((at, event.step, tag, content, event.wall))
                elif what == "histogram":
                    row = dict.fromkeys(_HISTOGRAM_COLUMNS, np.nan) | content
                    row |= {"at": at, "step": event.step, "tag": tag, "time": event.wall}
                    self._histograms.append({k: np.array([x], _TYPES.get(k, np.float64)) for k, x in row.items()})
                elif what == "text":
                    said = f"{single.text(value.tag)}: {content}"
                    self._rows.event("text", said, step=event.step, time=event.wall, at=at)
                elif what == "hparams":
                    config, status = content
                    for key, setting in config.items():
                        self._rows.config(key, setting, at=at)
                    if status:
                        said = f"hparams session: {status}"
                        self._rows.event("session", said, step=event.step, time=event.wall, at=at)
                else:
                    self.counts[what] += 1
        if metrics:
            names = ("at", "step", "tag", "value", "time")
            columns = zip(names, zip(*metrics, strict=True), strict=True)
            self._metrics.append({name: np.array(column, _TYPES.get(name, np.float64)) for name, column in columns})

    def _other(self, view: memoryview, event: one_event.Event, at: int) -> None:
        """Events that are no summary."""
        from parsers.tensorboard_format import one_event as single

        if event.what in (single.GRAPH, single.META_GRAPH):
            self.counts["graph"] += 1
        elif event.what == single.RUN_METADATA:
            self.counts["profile"] += 1
        elif event.what == single.SESSION:
            said = single.session(view, event.parts)
            self._rows.event("session", said, step=event.step, time=event.wall, at=at)
        elif event.what == single.LOG:
            level, said = single.log(view, event.parts)
            self._rows.event("log", said, level=level, step=event.step, time=event.wall, at=at)

    def _value(self, view: memoryview, value: one_event.Value) -> tuple[str, Any]:
        """-> metric, histogram, text or hparams and its content; or the noun under which it is counted."""
        from parsers.tensorboard_format import hparams_plugin, tag_names
        from parsers.tensorboard_format import one_event as single

        tag = self.names.tags.code(value.tag)
        if value.plugin:
            self.names.plugin.setdefault(tag, value.plugin)
        plugin = self.names.plugin.get(tag, "")
        if value.kind == single.SIMPLE:
            return "metric", value.number
        if value.kind == single.HISTOGRAM:
            return "histogram", _known_histogram(*single.histogram(view, value.parts))
        if value.kind == single.IMAGE:
            return "image", None
        if value.kind == single.AUDIO:
            return "audio clip", None
        if plugin == "hparams":
            return "hparams", hparams_plugin.hparams(view, value.content)
        if value.kind != single.TENSOR:
            return tag_names.noun(plugin) if plugin else "value without content", None
        tensor = single.tensor(view, value.parts)
        if plugin == "text" and tensor.dtype == single.STRING:
            return "text", "\n".join(tensor.strings)
        if plugin == "histograms" and tensor.numbers is not None and len(tensor.shape) == 2 and tensor.shape[1] == 3:
            return "histogram", _bucketed(tensor)
        if plugin not in tag_names.NOUNS and (number := tensor.scalar()) is not None:
            return "metric", number
        return tag_names.noun(plugin) if plugin not in ("", "scalars") else "tensor", None


_HISTOGRAM_COLUMNS = ("count", "min", "max", "mean", "std", "p05", "p25", "p50", "p75", "p95")
_TYPES = {"at": "i8", "step": "i8", "tag": "i4"}


def _known_histogram(known: list[float], edges: Any, weights: Any) -> dict[str, Any]:
    """A HistogramProto that was read alone -> its row."""
    import numpy as np

    from parsers.tensorboard_format import histograms

    count = min(len(edges), len(weights))
    mean, std = histograms.moments(*(np.array(x) for x in known[2:]))
    facts = {"min": known[0], "max": known[1], "count": known[2], "mean": float(mean), "std": float(std)}
    return histograms.one(np.append(-np.inf, edges)[:count], edges[:count], weights[:count], **facts)


def _bucketed(tensor: one_event.Tensor) -> dict[str, Any]:
    """A TF2 histogram, rows of (left edge, right edge, count) -> its row."""
    import numpy as np

    from parsers.tensorboard_format import histograms

    assert tensor.numbers is not None
    buckets = tensor.numbers.astype(np.float64)
    buckets = buckets[: len(buckets) // 3 * 3].reshape(-1, 3)
    return histograms.one(buckets[:, 0], buckets[:, 1], buckets[:, 2])


def _arrow(column: Any) -> pa.Array:
    """A numpy column as Arrow, without a copy."""
    import numpy as np

    column = np.ascontiguousarray(column)
    kinds = {"f8": pa.float64(), "i8": pa.int64(), "i4": pa.int32()}
    return pa.Array.from_buffers(kinds[column.dtype.str[1:]], len(column), [None, pa.py_buffer(column)])
