"""CSV, Parquet, Arrow and SQLite: torn and bloated tables, lying footers, databases that never stop answering."""

from __future__ import annotations

import io
import random
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hostile.case import SENTINEL, Case, points, value, write, writes

NAME = "log.csv"
KEPT = {"loss": points(0, 99)}


def csv(first: int, last: int, head: bool = True) -> str:
    return ("step,loss\n" if head else "") + "".join(f"{s},{v}\n" for s, v in points(first, last))


def cases() -> Iterator[Case]:
    yield from _csv()
    yield from _arrow()
    yield from _sqlite()


def _csv() -> Iterator[Case]:
    whole = csv(0, 99)

    def table(name: str, data: bytes | str, kept: Any = KEPT, **more: Any) -> Case:
        return Case(f"csv/{name}", write(NAME, data), kept, **more)

    def between(name: str, text: bytes | str, line: int = 52, **more: Any) -> Case:
        data = text.encode() if isinstance(text, str) else text
        gaps = ((NAME, f"line {line}"),) if line else ()
        return table(name, csv(0, 49).encode() + data + b"\n" + csv(50, 99, False).encode(), gaps=gaps, **more)

    yield table("torn_end", whole + "100,1.", lost=1, gaps=((NAME, "line 102"),))
    yield table("torn_and_next_launch", csv(0, 49) + "777,1." + csv(50, 99))
    yield between("row_too_long", "1,2,3,4,5,6,7")
    yield between("row_too_short", "700")
    yield between("quote_open", '700,"1.5')
    yield between("quotes_everywhere", '"' * 1001)
    yield between("text_row", "Traceback (most recent call last):", line=0)
    yield between("line_of_30_megabytes", "x" * (30 << 20), seconds=90)
    yield between("line_of_commas", "," * (8 << 20), seconds=90)
    yield between("cell_of_megabytes", "700," + "9" * (4 << 20), line=0, kept={})
    yield table("zero_hole", csv(0, 49).encode() + bytes(5000) + csv(50, 99, False).encode())
    yield table("zeros_at_end", whole.encode() + bytes(100_000))
    yield table("header_again", csv(0, 49) + csv(50, 99))
    yield table("header_cut", "ste\n" + csv(0, 99), exits=(0, 1), kept={})
    yield table("only_header", "step,loss\n", {}, exits=(0, 1))
    yield table("empty", "", {}, exits=(0, 1))
    yield table("noise", random.Random(1).randbytes(500_000), {}, exits=(0, 1))
    yield table("utf16", whole.encode("utf-16"))
    yield table("utf16_le", whole.encode("utf-16-le"))
    yield table("bom", b"\xef\xbb\xbf" + whole.encode())
    yield table("crlf", whole.replace("\n", "\r\n"))
    yield table("cr_only", whole.replace("\n", "\r"))
    yield table("latin1", b"step,loss,caf\xe9\n" + b"".join(b"%d,%s,1.5\n" % (s, str(v).encode()) for s, v in points(0, 99)))
    yield table("semicolons", whole.replace(",", ";"))
    wide = "step,loss," + ",".join(f"c{i}" for i in range(50_000)) + "\n"
    wide += "".join(f"{s},{v}," + ",".join("1" for _ in range(50_000)) + "\n" for s, v in points(0, 3))
    yield table("50k_columns", wide, {"loss": points(0, 3)}, seconds=120)
    yield table("names_alike", "step,loss,loss,loss\n" + "".join(f"{s},{v},{v},{v}\n" for s, v in points(0, 99)))
    yield table("names_empty", "step,loss,,\n" + "".join(f"{s},{v},1,2\n" for s, v in points(0, 99)))
    yield table("steps_extreme", "step,loss\n" + f"{2**63 - 1},1.25\n{-(2**63)},1.5\n" + csv(0, 99, False),
                {"loss": [(2**63 - 1, 1.25), (-(2**63), 1.5), *points(0, 99)]})  # fmt: skip
    yield table("steps_beyond", "step,loss\n" + csv(0, 99, False) + f"{2**64},1.25\n1e400,1.5\n", {})
    yield table("numbers_odd", "step,loss\n" + csv(0, 99, False) + "100,1e999\n101,-nan\n102,0x1p3\n103,1_000\n104,١٢\n105,++1\n", {})
    yield table("numbers_of_5000_digits", "step,loss\n" + csv(0, 99, False) + "100," + "9" * 5000 + "\n" + "8" * 5000 + ",1\n", {})
    yield table("formulas", "step,loss,=cmd|'/c calc'!A1\n" + "".join(f"{s},{v},1\n" for s, v in points(0, 99)))
    yield table(
        "widths_random", "step,loss\n" + "".join(f"{s},{v}" + ",7" * (s % 9) + "\n" for s, v in points(0, 300) if s is not None), {}
    )
    yield table("headers_without_end", "".join(f"step,loss,x{i}\n{i},{value(i)},1\n" for i in range(5000)), {}, seconds=90)
    yield table("long_quoted", "step,loss,note\n" + "".join(f'{s},{v},"a\nb\nc"\n' for s, v in points(0, 99)))
    yield table("comment_of_json", '#{"t_start": NaN, "x": ' + "[" * 100_000 + "\n" + whole, {})

    def grow(run: Path) -> None:
        path = run / NAME
        if path.stat().st_size < 50_000:
            with path.open("a") as f:
                f.write(csv(100, 110, False)[:-3])

    yield table("still_growing", whole, {}, grow=grow)


def _parquet(rows: int = 100, **more: Any) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    columns = {"step": [s for s, _ in points(0, rows - 1)], "loss": [v for _, v in points(0, rows - 1)]}
    pq.write_table(pa.table(columns), out, row_group_size=25, **more)
    return out.getvalue()


def _arrow() -> Iterator[Case]:
    import pyarrow as pa

    data = _parquet()
    beside = {NAME: csv(0, 99)}

    def damaged(name: str, broken: bytes, **more: Any) -> Case:
        return Case(f"parquet/{name}", writes(beside | {"history.parquet": broken}), **more)

    yield Case("parquet/sound", write("history.parquet", data), KEPT, lost=0)
    for share in (1, 4, 50, 99):
        yield damaged(
            f"cut_at_{share}_percent", data[: len(data) * share // 100], gaps=(("history.parquet", "row 0"),) if share > 1 else ()
        )
    yield damaged("footer_length_huge", data[:-8] + struct.pack("<I", 0xFFFFFFF0) + b"PAR1")
    yield damaged("footer_length_zero", data[:-8] + struct.pack("<I", 0) + b"PAR1")
    yield damaged("magic_only", b"PAR1")
    yield damaged("magic_twice", b"PAR1PAR1")
    rng = random.Random(7)
    for n in range(12):
        broken = bytearray(data)
        for _ in range(1 + n):
            broken[rng.randrange(4, len(broken))] ^= 1 << rng.randrange(8)
        yield damaged(f"flipped_{n}", bytes(broken))
    footer = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    for n in range(8):
        broken = bytearray(data)
        broken[rng.randrange(footer, len(data) - 8)] = rng.choice([0, 0x7F, 0x80, 0xFF])
        yield damaged(f"footer_{n}", bytes(broken))
    big = pa.table({"step": list(range(3_000_000)), "loss": [1.0] * 3_000_000})
    yield Case("parquet/3_million_rows", lambda run: _write_parquet(run, big), seconds=90)
    sink = io.BytesIO()
    batch = pa.record_batch({"step": [s for s, _ in points(0, 99)], "loss": [v for _, v in points(0, 99)]})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for _ in range(5):
            writer.write_batch(batch)
    stream = sink.getvalue()
    yield Case("arrow/stream_cut", writes(beside | {"history.arrow": stream[: len(stream) // 2]}))
    yield Case("arrow/length_bomb", writes(beside | {"history.arrow": stream[:4] + struct.pack("<i", 0x7FFFFFFF) + stream[8:]}))
    for n in range(8):
        broken = bytearray(stream)
        for _ in range(3):
            broken[rng.randrange(4, len(broken))] ^= 1 << rng.randrange(8)
        yield Case(f"arrow/flipped_{n}", writes(beside | {"history.arrow": bytes(broken)}))


def _write_parquet(run: Path, table: Any) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, run / "history.parquet")


_MLFLOW = (
    "CREATE TABLE runs (run_uuid TEXT PRIMARY KEY, name TEXT, status TEXT, start_time INTEGER, end_time INTEGER, lifecycle_stage TEXT, experiment_id INTEGER);"
    "CREATE TABLE metrics (key TEXT, value REAL, timestamp INTEGER, run_uuid TEXT, step INTEGER, is_nan INTEGER);"
    "CREATE TABLE latest_metrics (key TEXT, value REAL, timestamp INTEGER, run_uuid TEXT, step INTEGER, is_nan INTEGER);"
    "CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT); CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);"
)


def _mlflow(run: Path, script: str = "", name: str = "mlflow.db", tables: str = _MLFLOW) -> Path:
    path = run / name
    database = sqlite3.connect(path)
    database.executescript(tables)
    if tables == _MLFLOW:
        database.execute("INSERT INTO runs VALUES ('r1', 'one', 'RUNNING', 1700000000000, NULL, 'active', 0)")
        rows = [("loss", v, 1_700_000_000_000 + (s or 0), "r1", s, 0) for s, v in points(0, 99)]
        database.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)
        database.execute("INSERT INTO params VALUES ('lr', ?, 'r1')", [SENTINEL])
    database.executescript(script)
    database.commit()
    database.close()
    return path


def _sqlite() -> Iterator[Case]:
    yield Case("sqlite/sound", _mlflow, KEPT, present=(SENTINEL,))
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
    views = (
        "CREATE TABLE runs (run_uuid TEXT, name TEXT, status TEXT, start_time INTEGER, end_time INTEGER, lifecycle_stage TEXT, experiment_id INTEGER);"
        "INSERT INTO runs VALUES ('r1', 'one', 'RUNNING', 1, NULL, 'active', 0); CREATE TABLE latest_metrics (a);"
        f"CREATE VIEW metrics AS {endless} SELECT 'loss' AS key, 1.0 AS value, 1 AS timestamp, 'r1' AS run_uuid, 0 AS step, 0 AS is_nan, x AS rowid FROM c WHERE x < 0;"
        "CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT); CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);"
    )
    yield Case("sqlite/endless_view", lambda run: (_mlflow(run, tables=views), (run / NAME).write_text(csv(0, 99))), KEPT)
    yield Case(
        "sqlite/types_of_lies",
        lambda run: _mlflow(
            run,
            "INSERT INTO metrics VALUES ('x', 'text', 'late', 'r1', 'many', 'no'), (x'ff00', x'00', NULL, 'r1', NULL, NULL), (NULL, 1.0, 1, 'r1', 1, 0), ('y', 1e999, -9223372036854775808, 'r1', 9223372036854775807, 0), ('z', 1, 1, 'r2', 1, 0)",
        ),
        KEPT,
    )
    yield Case(
        "sqlite/params_of_lies",
        lambda run: _mlflow(
            run,
            "INSERT INTO params VALUES (NULL, NULL, 'r1'), ('big', zeroblob(500000), 'r1'); INSERT INTO runs VALUES ('r9', NULL, NULL, 'x', x'00', NULL, NULL)",
        ),
        KEPT,
    )

    def flipped(seed: int) -> Any:
        def build(run: Path) -> None:
            data = bytearray(_mlflow(run).read_bytes())
            rng = random.Random(seed)
            for _ in range(20):
                data[rng.randrange(100, len(data))] = rng.randrange(256)
            (run / "mlflow.db").write_bytes(data)
            (run / NAME).write_text(csv(0, 99))

        return build

    def cut(run: Path) -> None:
        path = _mlflow(run)
        path.write_bytes(path.read_bytes()[:9000])
        (run / NAME).write_text(csv(0, 99))

    for seed in range(6):
        yield Case(f"sqlite/flipped_{seed}", flipped(seed))
    yield Case("sqlite/cut", cut)
    yield Case("sqlite/header_only", writes({"mlflow.db": b"SQLite format 3\0" + bytes(84), NAME: csv(0, 99)}), KEPT)
    yield Case(
        "sqlite/wal_of_noise", lambda run: (_mlflow(run), (run / "mlflow.db-wal").write_bytes(random.Random(1).randbytes(40_000))), KEPT
    )
    triggers = "CREATE TRIGGER t AFTER INSERT ON metrics BEGIN DELETE FROM metrics; END;"
    yield Case("sqlite/trigger", lambda run: _mlflow(run, triggers), KEPT)


def arrow_stream(columns: dict[str, list[Any]]) -> bytes:
    """An Arrow stream, as ``save_to_disk`` of Hugging Face's datasets writes them."""
    import pyarrow as pa

    table = pa.table(columns)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    return sink.getvalue()
