"""The shipped samples after damage of every kind: mutations.py says what has to hold."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path

import pytest

from hostile import mutations, runner
from hostile.case import Case

PARTS = 8
SHARE = 1.0 if os.environ.get("HOSTILE") == "all" else 0.0  # 0: one cut and one of each other kind for a file


def _part(path: Path) -> int:
    return zlib.crc32(str(path.relative_to(mutations.SAMPLES)).encode()) % PARTS


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_samples(part: int, tmp_path: Path) -> None:
    """In a process of its own under limits, so that a hang or a death by signal is a failure like others."""
    mine = [p for p in mutations.files() if _part(p) == part and (SHARE or p.stat().st_size < 200_000)]
    mine = mine if SHARE else mine[:: max(len(mine) // 12, 1)]
    told = tmp_path / "told"

    def look() -> int:
        found = [x for p in mine for x in mutations.broken(p, SHARE)]
        told.write_text(json.dumps(found[:20]))
        return 0

    limit = mutations.SECONDS * len(mine) * (40 if SHARE else 4)
    status, _ = runner.forked(look, Case("mutations", lambda _: None, seconds=limit), tmp_path)
    assert told.exists(), f"ended with status {os.waitstatus_to_exitcode(status)}"
    assert json.loads(told.read_text()) == []


def test_there_are_files_to_damage() -> None:
    assert len(mutations.files()) > 50


def test_the_checks_notice() -> None:
    whole = mutations.Read([("a", s, "1.0", s * 10) for s in range(5)], [], "tensorboard", "byte")
    starts = {s * 10: s * 10 for s in range(5)}
    said = list(mutations._cut(whole, mutations.Read([("a", 9, "1.0", 0)], [], "tensorboard", "byte"), bytes(60), 35, starts))
    assert [s.split()[0] for s in said] == ["made", "2", "nothing"]
