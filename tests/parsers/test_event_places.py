"""The step of an event whose line begins with it, between lines that measure."""

from __future__ import annotations

from pathlib import Path

import pytest

import parsers
from parsers.tables import Run


def written(folder: Path, lines: list[str]) -> Run:
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    return parsers.read(folder)


def steps(run: Run, kind: str) -> list[int | None]:
    return [e["step"] for e in run.tables["events"].to_pylist() if e["kind"] == kind]


@pytest.mark.parametrize("front", ["", "2026-01-02 03:04:05.678 | WARNING  | __main__:<module>:55 - "])
def test_an_event_is_at_the_step_that_its_line_names_and_its_count_is_kept(tmp_path: Path, front: str) -> None:
    lines = []
    for n in range(10, 80, 10):
        lines += [
            f"{front}it {n} non-finite gradient, update skipped ({n - 3} so far)",
            f"{front}epoch {n // 40} it {n} loss {134 + n / 90:.4f}",
        ]
    run = written(tmp_path, lines)
    rows = run.tables["metrics"].to_pylist()
    assert steps(run, "nonfinite") == list(range(10, 80, 10))
    assert [(r["step"], r["value"]) for r in rows if r["name"] == "skip.count"] == [(n, n - 3.0) for n in range(10, 80, 10)]
    assert {r["tag"] for r in rows} == {"skipped", "loss", "epoch"}


def test_a_number_behind_where_the_log_is_counts_within_the_epoch(tmp_path: Path) -> None:
    lines = []
    for n in range(1, 13):
        epoch, it = (n - 1) // 4, (n - 1) % 4 + 1
        lines.append(f"epoch {epoch} it {it} loss {2 - n / 20:.4f}")
        lines += ["it 2 non-finite gradient, update skipped"] if it == 2 else []
    assert steps(written(tmp_path, lines), "nonfinite") == [2, 6, 10]
