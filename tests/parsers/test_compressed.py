"""Logs that were compressed one by one are read as their content is."""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import parsers
from parsers import compressed

LOG = "".join(json.dumps({"step": i, "loss": 3 - i / 1000, "lr": 1e-3}) + "\n" for i in range(2000)).encode()


def _zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


PACK: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": _zstd}


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("name", ["log.jsonl", "rank_1/train.log"])
def test_a_compressed_log_is_read_as_its_content(suffix: str, name: str, tmp_path: Path) -> None:
    lines = LOG if name.endswith("jsonl") else b"".join(b"step %d loss %.4f\n" % (i, 3 - i / 1000) for i in range(2000))
    for folder, file, data in (("plain", name, lines), ("packed", name + suffix, PACK[suffix](lines))):
        (path := tmp_path / folder / file).parent.mkdir(parents=True)
        path.write_bytes(data)
    plain, packed = parsers.read(tmp_path / "plain"), parsers.read(tmp_path / "packed")
    columns = ["step", "tag", "value", "rank", "at"]
    assert packed.tables["metrics"].select(columns).to_pydict() == plain.tables["metrics"].select(columns).to_pydict()
    (source,) = packed.sources
    assert source.path == name + suffix and "decompressed" in source.note and not packed.gaps
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == sorted([Path(name).name, Path(name).name + suffix])


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_what_lies_before_a_cut_is_read(suffix: str, tmp_path: Path) -> None:
    whole = PACK[suffix](
        b"".join(b'{"step": %d, "loss": %r}\n' % (i, 3 - (i * 7919 % 9973) / 1e6) for i in range(20_000))
    )  # several blocks
    (tmp_path / f"log.jsonl{suffix}").write_bytes(whole[: len(whole) // 2])
    run = parsers.read(tmp_path)
    assert run.tables["metrics"].num_rows > 500
    assert any("damaged or cut" in g.what and g.path == f"log.jsonl{suffix}" for g in run.gaps)


def test_a_bomb_ends_at_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed, "MOST_BYTES", 1 << 16)
    (tmp_path / "log.jsonl.gz").write_bytes(gzip.compress(LOG + b"\n" * (1 << 24)))
    run = parsers.read(tmp_path)
    assert any("once decompressed" in g.what for g in run.gaps) and run.tables["metrics"].num_rows > 1000


def test_what_no_parser_knows_stays_packed(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(LOG)
    (tmp_path / "prose.txt.gz").write_bytes(gzip.compress(b"It was a dark and stormy night.\n" * 50))
    (tmp_path / "logs.tar.gz").write_bytes(gzip.compress(LOG))
    assert {s.path: s.claimed for s in parsers.read(tmp_path).sources} == {"log.jsonl": True, "prose.txt.gz": False, "logs.tar.gz": False}
