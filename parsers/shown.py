"""What leaves parsers: the names in tables, sources and gaps as they are shown, without secrets.

Everything before works on the names as they are, so that two tags or two folders that differ only in a secret stay two.
Here each gets a name of its own (:func:`parsers.secrets.names`); `Run.file` still finds the file behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from parsers import arrow, secrets
from parsers.tables import Run


def hide(runs: list[Run], files: Mapping[str, Path]) -> None:
    """Changes the runs, which were read together; ``files``: where the file of each source lies."""
    ids = secrets.names(r.id for r in runs)
    shown = secrets.names(_names(runs))
    for r in runs:
        r.id = ids.get(r.id, r.id)
        r.files = {shown.get(s.path, s.path): files[s.path] for s in r.sources if s.path in files and (s.path in shown or "\\" in s.path)}
        if shown:
            _hide(r, shown)


def _hide(run: Run, shown: dict[str, str]) -> None:
    run.sources = [replace(s, path=shown.get(s.path, s.path), format=shown.get(s.format, s.format)) for s in run.sources]
    run.gaps = [replace(g, path=shown.get(g.path, g.path)) for g in run.gaps]
    run.tables = {name: _table(table, shown) for name, table in run.tables.items()}
    run.meanings = {
        (shown.get(source, source), shown.get(tag, tag)): replace(m, name=shown.get(m.name, m.name))
        for (source, tag), m in run.meanings.items()
    }


def _names(runs: list[Run]) -> Iterator[str]:
    """Every name that is shown; of columns only of those that hold a secret somewhere."""
    held: dict[bytes, pa.StringArray] = {}
    for r in runs:
        for s in r.sources:
            yield from (s.path, s.format)
        yield from (g.path for g in r.gaps)
        held |= {_raw(texts): texts for table in r.tables.values() for column in table.columns for texts in _texts(column)}
    if secrets.has_hints(b"\0".join(held)):  # asked once for all: each hint is looked for in each text
        yield from (v for texts in held.values() if _suspicious(texts) for v in texts.to_pylist() if v is not None)


def _texts(column: pa.ChunkedArray) -> Iterator[pa.StringArray]:
    for chunk in column.chunks:
        held = chunk.dictionary if isinstance(chunk, pa.DictionaryArray) else chunk
        if pa.types.is_string(held.type):
            yield held


def _suspicious(texts: pa.StringArray) -> bool:
    if not secrets.has_hints(_raw(texts)):
        return False
    return secrets.has_shapes("\n".join(v for v in texts.to_pylist() if v is not None).encode())


def _raw(texts: pa.StringArray) -> bytes:
    held = texts.buffers()[2]
    return b"" if held is None else bytes(held)


def _table(table: pa.Table, shown: dict[str, str]) -> pa.Table:
    for i, column in enumerate(table.columns):
        if any(_suspicious(texts) for texts in _texts(column)):
            chunks = [_chunk(c, shown) for c in column.chunks]
            table = table.set_column(i, table.schema.field(i), pa.chunked_array(chunks, column.type))
    return table


def _chunk(chunk: pa.Array, shown: dict[str, str]) -> pa.Array:
    if isinstance(chunk, pa.DictionaryArray):
        return pa.DictionaryArray.from_arrays(chunk.indices, _chunk(chunk.dictionary, shown), safe=False)
    return arrow.texts([None if v is None else shown.get(v, v) for v in chunk.to_pylist()])
