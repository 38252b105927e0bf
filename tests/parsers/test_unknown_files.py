"""Files that nothing names: read where they prove what they mean, else named; databases of trackers are no logs and no settings."""

from __future__ import annotations

from pathlib import Path

import pytest

import parsers
from parsers import unknown_log
from parsers.runs.assemble import FileRead

LOSSES = [3 - i / 50 for i in range(60)]


def read(tmp_path: Path, text: str, name: str = "values.odd") -> FileRead:
    path = tmp_path / name
    path.write_text(text)
    return parsers.read_file(path, tmp_path)


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("".join(f"step {i} loss {x}\n" for i, x in enumerate(LOSSES)), "loss"),
        ("step loss lr\n" + "".join(f"{i} {x} 0.001\n" for i, x in enumerate(LOSSES)), "loss"),
        ("".join(f"@{i} => loss<{x}> gn<{i / 7}> 17\n" for i, x in enumerate(LOSSES)), "loss"),
    ],
)
def test_what_proves_its_meaning_is_read(tmp_path: Path, text: str, tag: str) -> None:
    found = read(tmp_path, text)
    rows = [r for b in found.batches["metrics"] for r in b.to_pylist() if r["tag"] == tag]
    assert [(r["step"], r["value"]) for r in rows] == list(enumerate(LOSSES))


def test_how_it_was_read_is_told(tmp_path: Path) -> None:
    found = read(tmp_path, "begin\n" + "".join(f"@{i} => loss<{x}> gn<{i / 7}> 17\n" for i, x in enumerate(LOSSES)))
    assert "all lines are like '@0 => loss<0> gn<0> 0'" in found.source.note and [g.lost for g in found.gaps] == [1]
    assert {r["tag"] for b in found.batches["metrics"] for r in b.to_pylist()} == {"loss", "gn"}  # nothing names the 17


@pytest.mark.parametrize(
    "text",
    [
        "a note\nof two lines\n",
        "".join(f"@{i % 5} => loss<{x}>\n" for i, x in enumerate(LOSSES)),  # nothing counts
        "".join(f"{i} <{x}> [{x}]\n" for i, x in enumerate(LOSSES)),  # nothing is named
        "".join(f"line {i} of {'abc'[i % 3] * (i + 1)} {x}\n" for i, x in enumerate(LOSSES)),  # no two lines are alike
        "".join(f"@{i} => loss<{x}>\n" for i, x in enumerate(LOSSES[:10])),  # too few to show a habit
    ],
)
def test_what_proves_nothing_is_named(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, text)
    assert found.source.format == "text that no parser knows" and not found.batches


def test_numbers_within_words_are_no_numbers() -> None:
    assert unknown_log.shape_of("conv2d_1 v1.2.3 4e-3 nan info") == ("conv2d_1 v1.2.3 ", " ", " info")


def test_a_trackers_database_is_neither_log_nor_settings(tmp_path: Path) -> None:
    chunk = tmp_path / ".aim" / "meta" / "chunks" / "2d24"
    chunk.mkdir(parents=True)
    (chunk / "CURRENT").write_text("MANIFEST-000004\n")
    (chunk / "MANIFEST-000004").write_bytes(b"\x00\x01")
    (chunk / "OPTIONS-000007").write_text("[Version]\n  rocksdb_version=6.29.4\n[CFOptions]\n  block_align=false\n")
    (chunk / "LOG").write_text("2026/03/01-10:00:00.123 140 [db/flush_job.cc:33] step 3 loss 2.5\n" * 30)
    (tmp_path / "log.jsonl").write_text('{"step": 1, "loss": 2.5}\n')
    run = parsers.read(tmp_path)
    assert run.tables["config"].num_rows == 0 and run.tables["metrics"].num_rows == 1
    assert {s.path: s.format for s in run.sources}[".aim/meta/chunks/2d24"] == "RocksDB or LevelDB database, not opened"
    assert [(g.path, "Run.dataframe()" in g.what) for g in run.gaps] == [(".aim", True)]


def test_a_text_whose_head_is_settings_is_told_by_its_end(tmp_path: Path) -> None:
    settings = "n_batches: 40\ncreating an agent\nT: 50\n" * 400
    tables = "".join(
        f"{'-' * 36}\n| epoch              | {i} |\n| test/mean_Q        | {-i / 7:.4f} |\n| train/success_rate | {i / 40} |\n"
        f"| train/episodes     | {40 * i} |\n{'-' * 36}\n"
        for i in range(80)
    )
    assert read(tmp_path, settings + tables, "run1.txt").source.format == "console"
    assert not read(tmp_path, settings + "It was a dark and stormy night.\n" * 400, "run2.txt").source.claimed
