"""A log that rotation (copytruncate) emptied under the process that writes it begins with zeros: what stands behind them is read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import parsers
from forensics.audits import listing

_ZEROS = 11_000


def _lines(kind: str) -> bytes:
    rows = [(i, round(3 - i / 1000, 4), round(1e-3 - i * 1e-7, 7)) for i in range(700, 1000, 10)]
    if kind == "run.jsonl":
        return b"".join(json.dumps({"step": s, "loss": x, "lr": lr}).encode() + b"\n" for s, x, lr in rows)
    if kind == "metrics.csv":
        return b"step,loss,lr\n" + b"".join(b"%d,%r,%r\n" % r for r in rows)
    return b"".join(b"step %d | loss %r | lr %r\n" % r for r in rows)


@pytest.mark.parametrize("zeros", [40, _ZEROS, 3 << 20])
@pytest.mark.parametrize("name", ["train.log", "run.jsonl", "metrics.csv", "console.txt"])
def test_a_log_behind_zeros_is_read_as_it_would_be_without_them(name: str, zeros: int, tmp_path: Path) -> None:
    for folder, data in (("plain", _lines(name)), ("rotated", bytes(zeros) + _lines(name))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_bytes(data)
    plain, rotated = parsers.read(tmp_path / "plain"), parsers.read(tmp_path / "rotated")
    columns = ["step", "tag", "value", "at"]
    assert rotated.tables["metrics"].select(columns).to_pydict() == plain.tables["metrics"].select(columns).to_pydict()
    assert plain.tables["metrics"].num_rows > 0 and not plain.gaps
    (gap,) = rotated.gaps
    assert gap.path == name and gap.at == "byte 0" and gap.what.startswith(f"{zeros:,} zero bytes before the first line")
    (source,) = rotated.sources
    assert (source.path, source.bytes) == (name, zeros + len(_lines(name)))


def test_a_hole_that_was_never_written_costs_nothing(tmp_path: Path) -> None:
    with (path := tmp_path / "train.log").open("wb") as f:
        f.seek(1 << 34)  # 16 GiB
        f.write(_lines("train.log"))
    if path.stat().st_blocks * 512 > 1 << 20 or not hasattr(os, "SEEK_DATA"):
        pytest.skip("this file system has no holes")
    assert parsers.read(tmp_path).tables["metrics"].num_rows


def test_zeros_alone_and_zeros_before_what_is_no_log_are_named_as_before(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_bytes(bytes(_ZEROS))
    (tmp_path / "tokens.bin").write_bytes(bytes(_ZEROS) + bytes(range(256)) * 40)
    assert {s.path: s.format for s in parsers.read(tmp_path).sources} == {"train.log": "zeros only", "tokens.bin": "zeros only"}


def test_a_hole_between_two_lines_stays_where_it_is(tmp_path: Path) -> None:
    first, second = b"".join(_lines("train.log").splitlines(keepends=True)[:5]), b"step 990 | loss 2.01 | lr 0.0009\n"
    (tmp_path / "train.log").write_bytes(first + bytes(_ZEROS) + second)
    run = parsers.read(tmp_path)
    assert run.tables["metrics"]["step"].to_pylist()[-1] == 990
    assert [g.at for g in run.gaps] == ["line 6"]


def test_an_audit_knows_such_a_log(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_bytes(bytes(_ZEROS) + _lines("train.log"))
    (tmp_path / "empty.log").write_bytes(bytes(_ZEROS))
    assert {f.path: f.kind for f in listing.listed(str(tmp_path), {})} == {"train.log": "console", "empty.log": "other"}
