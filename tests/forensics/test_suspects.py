"""`--data`: planted oddities stand out, random samples do not, and nothing of the content gets out."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from forensics import cli
from forensics.batches import row_habits, sample_stats
from forensics.batches.inspect_samples import compare
from parsers.records.data_sets import Unreadable, open_data

SAMPLES = Path(__file__).parents[2] / "samples"
WORDS = [a + b for a in ("ba", "ke", "lo", "mi", "tu", "sa") for b in ("ra", "ne", "so", "ti", "lu", "fen")]


def prose(seed: int, length: int = 60) -> str:
    rng = random.Random(seed)
    n = max(int(length * rng.lognormvariate(0, 0.4)), 20)
    return " ".join(rng.choices(WORDS, [1 / (i + 2) for i in range(len(WORDS))], k=n))


def texts(n: int, first: int = 0) -> list[dict[str, Any]]:
    return [{"text": prose(first + i)} for i in range(n)]


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ({"text": "ha " * 120}, "repeated 4-grams"),
        ({"text": "".join(chr(random.Random(1).randrange(1, 32)) for _ in range(600))}, "non-text"),
        ({"text": prose(1) * 60}, "length"),
        ({"text": "x" * 700}, "compressed size"),
    ],
)
def test_an_odd_text_stands_out(odd: dict[str, Any], said: str) -> None:
    suspects = [(i, row) for i, row in enumerate([*texts(7, 5000), odd])]
    lines, ids = compare(suspects, texts(300))
    assert ids == [7]
    assert any(said in line for line in lines), lines


def test_samples_like_the_others_do_not() -> None:
    pool = texts(700)
    alarms = 0
    rng = random.Random(3)
    for _ in range(60):
        picked = rng.sample(range(len(pool)), 140)
        lines, _ = compare([(i, pool[i]) for i in picked[:12]], [pool[i] for i in picked[12:]])
        alarms += bool(lines)
    assert alarms <= 6


def test_tokens_out_of_range_masks_and_labels() -> None:
    rng = np.random.default_rng(1)

    def row(top: int = 500, masked: float = 0.3, label: int | None = None) -> dict[str, Any]:
        ids = rng.integers(0, top, 64)
        labels = np.where(rng.random(64) < masked, -100, ids)
        return {"input_ids": ids.tolist(), "labels": labels.tolist()} | ({} if label is None else {"class": label})

    others = [row(label=int(rng.integers(0, 10))) for _ in range(200)]
    lines, ids = compare([("a", row(900)), ("b", row(masked=1.0)), ("c", row(label=77))], others, vocabulary=500)
    assert any("token ids out of range" in line and "sample a" in line for line in lines)
    assert any("masked targets" in line and "sample b" in line for line in lines)
    assert any("77 of sample c" in line for line in lines)
    assert set(ids) == {"a", "b", "c"}


def test_copies_and_near_copies() -> None:
    others = texts(100)
    same = [(i, {"text": prose(9000)}) for i in range(6)]
    assert "6 of 6 samples are copies of one" in compare(same, others)[0][0]
    words = prose(9000, 400).split()
    near = []
    for i in range(8):
        changed = list(words)
        changed[i] = "other"
        near.append((i, {"text": " ".join(changed)}))
    assert any("nearly repeat" in line for line in compare(near, others)[0])


def test_minhash_estimates_the_share_of_common_shingles() -> None:
    a, b = prose(1, 400).split(), prose(2, 400).split()
    mixed = a[: len(a) // 2] + b[: len(b) // 2]
    x, y = (sample_stats.minhash({"text": " ".join(w)}) for w in (a, mixed))
    assert x is not None
    assert y is not None
    sets = [{tuple(w[i : i + 5]) for i in range(len(w) - 4)} for w in (a, mixed)]
    exact = len(sets[0] & sets[1]) / len(sets[0] | sets[1])
    assert float((x == y).mean()) == pytest.approx(exact, abs=0.17)  # 64 hashes: 0.06 of standard error


# -- opening data -----------------------------------------------------------------------------------------------------

ROWS = [{"id": f"doc-{i}", "text": f"row {i}"} for i in range(50)]


def jsonl(folder: Path) -> Path:
    for part in range(2):
        lines = "\n".join(json.dumps(r) for r in ROWS[25 * part : 25 * part + 25])
        (folder / f"part-{part}.jsonl").write_text(lines + "\n" * part)  # one file without a last line end
    return folder


def parquet(folder: Path) -> Path:
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "a.parquet", row_group_size=7)
    return folder / "a.parquet"


def arrow(folder: Path) -> Path:
    """As datasets' save_to_disk lays it out: streams, listed in state.json."""
    names = []
    for part in range(2):
        table = pa.Table.from_pylist(ROWS[25 * part : 25 * part + 25])
        names.append(f"data-{part:05d}-of-00002.arrow")
        with pa.ipc.new_stream(folder / names[-1], table.schema) as out:
            out.write_table(table, max_chunksize=6)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": n} for n in names]}))
    return folder


@pytest.mark.parametrize("write", [jsonl, parquet, arrow])
def test_rows_by_their_number(write: Callable[[Path], Path], tmp_path: Path) -> None:
    data = open_data(write(tmp_path))
    assert data.rows == 50
    assert [r["text"] for r in data.get([31, 0, 7, 49, 24, 25])] == [f"row {i}" for i in (31, 0, 7, 49, 24, 25)]
    assert data.ids() == [r["id"] for r in ROWS]


def test_what_datasets_itself_writes(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_list(ROWS).shuffle(seed=1)
    made.save_to_disk(str(tmp_path / "set"), num_shards=2)
    data = open_data(tmp_path / "set")
    assert [r["text"] for r in data.get([3, 40])] == [made[3]["text"], made[40]["text"]]


@pytest.mark.parametrize("kind", [np.uint16, np.uint32])
def test_token_files(kind: type, tmp_path: Path) -> None:
    tokens = np.random.default_rng(1).integers(0, 50_000, 4096).astype(kind)
    tokens.tofile(tmp_path / "train.bin")
    data = open_data(tmp_path / "train.bin", block=64)
    assert data.rows == 64
    assert data.get([5])[0]["input_ids"].tolist() == tokens[320:384].tolist()
    np.save(tmp_path / "rows.npy", tokens.reshape(-1, 32))
    assert open_data(tmp_path / "rows.npy").get([2])[0]["input_ids"].tolist() == tokens[64:96].tolist()
    with pytest.raises(Unreadable, match="how many make a sample"):
        open_data(tmp_path / "train.bin")


def test_a_tokenizer_beside_the_data_gives_the_vocabulary(tmp_path: Path) -> None:
    parquet(tmp_path)
    tokenizer = {"model": {"vocab": {"a": 0, "b": 1}}, "added_tokens": [{"id": 2, "content": "<s>"}]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert open_data(tmp_path / "a.parquet").vocabulary == 3


@pytest.mark.parametrize(("name", "content"), [("a.parquet", b"PAR1"), ("b.arrow", b"\x00" * 9), ("c.txt", b"x"), ("d.npy", b"\x93NUMPY")])
def test_damage_is_one_sentence(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Unreadable) as e:
        open_data(tmp_path / name)
    assert "\n" not in str(e.value)


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{"x": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(Unreadable):
        open_data(tmp_path / "a.npy")


# -- the whole way ----------------------------------------------------------------------------------------------------


def analyzed(tmp_path: Path, *options: str) -> tuple[dict[str, Any], str]:
    case, page = tmp_path / "c.json", tmp_path / "p.html"
    run = str(SAMPLES / "bad_sample_shuffled_jsonl" / "metrics.jsonl")
    folder = tmp_path / "x"
    folder.mkdir(exist_ok=True)
    for name in ("metrics.jsonl", "batches.jsonl", "config.yaml"):
        (folder / name).write_bytes((Path(run).parent / name).read_bytes())
    done = CliRunner().invoke(
        cli.main, ["analyze", str(folder), "--out", str(page), "--json", str(case), "--force", "--md", str(tmp_path / "p.md"), *options]
    )
    assert done.exit_code == 0, done.output
    return json.loads(case.read_text()), page.read_text() + (tmp_path / "p.md").read_text()


def test_the_odd_sample_is_found_and_weighs(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [{"x": rng.standard_normal(8).tolist(), "label": int(rng.integers(10)), "note": f"secret {i}"} for i in range(960)]
    rows[417]["x"][0] = 90.0
    data = tmp_path / "train.jsonl"
    data.write_text("".join(json.dumps(r) + "\n" for r in rows))
    without, plain = analyzed(tmp_path)
    assert "suspects" not in without
    assert "In the data" not in plain
    found, page = analyzed(tmp_path, "--data", str(data))
    looked = found["suspects"]
    assert looked["odd"] == [417]
    assert "sample 417: largest input 90" in looked["lines"][0]
    assert "In the data" in page
    assert "secret" not in page
    assert "secret" not in json.dumps(found)
    best, before = found["hypotheses"][0], without["hypotheses"][0]
    assert best["id"] == "bad_data_batch" and best["score"] - before["score"] == pytest.approx(6.0)


def test_data_without_these_rows_says_so(tmp_path: Path) -> None:
    data = tmp_path / "other.jsonl"
    data.write_text("".join(json.dumps({"id": f"z{i}", "text": "y"}) + "\n" for i in range(2)))
    found, page = analyzed(tmp_path, "--data", str(data))
    assert found["suspects"]["lines"] == []
    assert "is a row of these data" in page


def tokenized(bos: int = 1, mask: int = 6, shift: int = 0, length: int | None = None) -> list[dict[str, Any]]:
    rows = []
    for i in range(100):
        rng = random.Random(i)
        ids = [1] * bos + [rng.randrange(5, 900) for _ in range(rng.randrange(20, 40))]
        real = len(ids)
        ids += [0] * ((length or real) - real)
        labels = (ids[shift:] + [2, 3][:shift])[: len(ids)]
        labels = [-100] * mask + labels[mask:]
        rows.append({"input_ids": ids, "labels": labels, "attention_mask": [1] * real + [0] * (len(ids) - real)})
    return rows


@pytest.mark.parametrize(
    ("planted", "says", "healthy"),
    [
        ({"bos": 2}, "stands twice at the beginning of 100 of 100", "begins 100 of 100 random rows, once"),
        ({"bos": 0}, "No token begins most of 100", "begins 100 of 100 random rows, once"),
        ({"mask": 0}, "prompts and padding are trained on", "of the row before the first target that counts"),
        ({"shift": 2}, "they were shifted twice", "are the inputs themselves"),
        ({"shift": 1}, "are the next tokens", "are the inputs themselves"),
        ({"length": 96}, "Packed samples", ""),
    ],
)
def test_habits_of_random_rows(planted: dict[str, int], says: str, healthy: str) -> None:
    odd, sound = (" ".join(row_habits.of_rows(tokenized(**p))) for p in (planted, {}))
    assert says in odd and says not in sound
    assert healthy in sound and (not healthy or healthy not in odd)


def test_habits_tell_of_copies_and_not_of_text_without_tokens() -> None:
    assert row_habits.of_rows(texts(60)) == []
    assert row_habits.of_rows([*texts(50), *texts(10)]) == ["10 of 60 random rows are copies of others among them: the set holds far more."]
