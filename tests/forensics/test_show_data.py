"""`--show-data`: what somebody reads of suspect batches, and that it goes onto the page only where it was asked for."""

from __future__ import annotations

import io
import json
import random
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from forensics import at_path, cli
from forensics.case import Finding
from forensics.read_data import chosen_batches, column_numbers, sample_parts, small_pictures
from parsers.records import token_pieces
from parsers.records.data_sets import Unreadable, open_data
from parsers.records.token_pieces import BYTES, Vocabulary
from reports import data_section

SPIKE, BATCH, ROWS = 150, 4, 600
HOLDS = "This section holds training data"
LETTER = {b: c for c, b in BYTES.items()}


def write_run(folder: Path) -> list[int]:
    """A run with a spike at step 150 and a manifest; -> the ids of that batch."""
    folder.mkdir()
    rng = random.Random(1)
    log, batches = [], []
    for s in range(300):
        loss = 2.5 - s / 200 + rng.gauss(0, 0.03) + (9.0 if s == SPIKE else 0.0)
        log.append(json.dumps({"step": s, "loss": loss, "lr": 1e-3}))
        batches.append(json.dumps({"step": s, "sample_ids": [(s * BATCH + i) % ROWS for i in range(BATCH)]}))
    (folder / "log.jsonl").write_text("\n".join(log))
    (folder / "batches.jsonl").write_text("\n".join(batches))
    return [(SPIKE * BATCH + i) % ROWS for i in range(BATCH)]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(json.dumps(r) for r in rows))
    return path


def call(*arguments: object) -> Result:
    return CliRunner().invoke(cli.main, [str(a) for a in arguments])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_run(tmp_path / "run")
    return tmp_path / "run"


def texts(odd: dict[int, dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    words = ["a", "few", "plain", "words", "of", "a", "row", "that", "nobody", "would", "look", "at", "twice"]
    rng = random.Random(2)
    return [(odd or {}).get(i) or {"text": f"row {i} " + " ".join(rng.choices(words, k=30))} for i in range(ROWS)]


# -- the page ---------------------------------------------------------------------------------------------------------


def test_suspects_stand_beside_two_ordinary_batches(run: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "d.jsonl", texts({2: {"text": "ha " * 200}}))
    done = call("analyze", run, "--data", data, "--show-data", "--out", tmp_path / "r.html")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "r.html").read_text()
    section = page[page.index('id="data"') :]
    assert HOLDS in section and "Suspect batch: step 150" in section
    assert re.findall(r"Ordinary batch: step (\d+)", section) == ["149", "148"]
    assert "Sample 2 " in section and "stands out" in section
    assert "row 596 " in section, "a sample of step 149"
    assert "nearest earlier batches of as many samples" in section
    assert "ha ha ha" not in (tmp_path / "r.case.json").read_text()
    embedded = re.search(r'<script type="application/json" id="case">(.*?)</script>', page, re.S)
    assert embedded and "ha ha ha" not in embedded[1]


def test_without_the_option_no_word_of_the_data_is_anywhere(run: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "d.jsonl", texts({2: {"text": "ha " * 200}}))
    done = call("analyze", run, "--data", data, "--out", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert done.exit_code == 0 and "add --show-data" in done.output
    assert "ha ha ha" not in page and "row 596" not in page and HOLDS not in page and "img-src" not in page


@pytest.mark.parametrize(
    ("options", "said"), [(("--data", "d.jsonl", "--show-data", "--redact"), "give one of them"), (("--show-data",), "needs --data")]
)
def test_refused_where_it_may_not_be(run: Path, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    done = call("analyze", run, *options, "--out", tmp_path / "r.html")
    assert done.exit_code == 2 and said in done.output
    assert not (tmp_path / "r.html").exists()


def test_a_page_made_anew_from_the_case_has_no_data(run: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "d.jsonl", texts())
    assert call("analyze", run, "--data", data, "--show-data", "--out", tmp_path / "r.html").exit_code == 0
    assert call("render", tmp_path / "r.case.json", "--out", tmp_path / "again.html").exit_code == 0
    assert HOLDS in (tmp_path / "r.html").read_text()
    assert HOLDS not in (tmp_path / "again.html").read_text()


def test_data_that_are_not_those_of_the_run_cost_only_the_section(run: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "d.jsonl", [{"id": f"other-{i}", "text": "x"} for i in range(1)])
    (run / "batches.jsonl").write_text("\n".join(json.dumps({"step": s, "sample_ids": [f"doc-{s}"]}) for s in range(300)))
    done = call("analyze", run, "--data", data, "--show-data", "--out", tmp_path / "r.html")
    assert done.exit_code == 0
    assert "None of the 1 samples of step 150 is a row of these data." in (tmp_path / "r.html").read_text()


def test_a_healthy_run_has_nothing_to_show(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    rng = random.Random(1)
    (folder / "log.jsonl").write_text("\n".join(json.dumps({"step": s, "loss": 2.5 - s / 200 + rng.gauss(0, 0.03)}) for s in range(300)))
    data = write_rows(tmp_path / "d.jsonl", texts())
    assert call("analyze", folder, "--data", data, "--show-data", "--out", tmp_path / "r.html").exit_code == 0
    assert "No batch is suspect: nothing to show." in (tmp_path / "r.html").read_text()


def test_markup_and_secrets_of_a_row_stay_text(run: Path, tmp_path: Path) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    evil = {
        "text": f"<script>alert(1)</script> \u202e \x1b[31m </pre> token={key} " + "x" * 100,
        "<b>name</b>": "<img src=x onerror=alert(1)>",
        "auth": key,
    }
    data = write_rows(tmp_path / "d.jsonl", texts(dict.fromkeys(range(BATCH), evil)))
    assert call("analyze", run, "--data", data, "--show-data", "--out", tmp_path / "r.html").exit_code == 0
    page = (tmp_path / "r.html").read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page and "\\u202e" in page and "\\x1b[31m" in page
    assert (
        "<script>alert" not in page and "\u202e" not in page and "\x1b" not in page and "<img src=x" not in page and "<b>name" not in page
    )
    assert key not in page


def test_many_long_samples_stay_small(run: Path, tmp_path: Path) -> None:
    big = {"text": "word " * 400_000, "input_ids": list(range(50_000)), **{f"c{i}": "v" * 9999 for i in range(300)}}
    data = write_rows(tmp_path / "d.jsonl", texts(dict.fromkeys(range(BATCH), big)))
    assert call("analyze", run, "--data", data, "--show-data", "--out", tmp_path / "r.html").exit_code == 0
    page = (tmp_path / "r.html").read_text()
    assert len(page) < 1_000_000 and "characters left out" in page and "tokens left out" in page and "more fields" in page


def test_batch_prints_samples_and_json_never_does(run: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "d.jsonl", texts({1: {"text": "evil \x1b[2J words " * 9}}))
    done = call("batch", run, "--step", SPIKE, "--data", data, "--show-data")
    assert done.exit_code == 0 and "--- sample 0" in done.output and "row 0 " in done.output and "\x1b" not in done.output
    assert "row 0 " not in call("batch", run, "--step", SPIKE).output
    assert call("batch", run, "--step", SPIKE, "--data", data, "--show-data", "--json").exit_code == 2
    assert call("batch", run, "--step", SPIKE, "--show-data").exit_code == 2


@pytest.mark.parametrize(("last", "expected"), [(None, [9, 8]), (190, [191, 192])])
def test_ordinary_batches_lie_outside_of_long_symptoms(run: Path, last: int | None, expected: list[int]) -> None:
    """A divergence from step 10 to the end leaves the batches before it; one from the first step on those behind it."""
    read = at_path.read(str(run))
    first = chosen_batches.Batch(SPIKE, 0, (0,), BATCH, "recorded")
    long = Finding("x-1", "divergence", "x", 10 if last is None else 0, last, "critical", ())
    found, rule = chosen_batches.ordinary(read, [long], [first])
    assert [b.step for b in found] == expected and "outside" in rule
    everywhere = Finding("x-1", "divergence", "x", 0, None, "critical", ())
    found, rule = chosen_batches.ordinary(read, [everywhere], [first])
    assert [b.step for b in found] == [149, 148] and "each lies within the steps of some symptom" in rule


# -- tokens -----------------------------------------------------------------------------------------------------------


def vocabulary() -> Vocabulary:
    pieces = {b: LETTER[b] for b in range(256)} | {256: "\u0120the", 257: "<|end|>"}
    return Vocabulary("tokenizer.json", pieces, frozenset({257}), True)


def test_tokens_with_special_ones_and_what_is_not_trained_on() -> None:
    ids = [72, 105, 256, 257, 0xC3, 0xA9, 999]
    found = sample_parts.parts({"input_ids": ids, "labels": [-100, -100, 256, 257, 0xC3, 0xA9, 999]}, vocabulary())["tokens"][0]
    assert [p[0] for p in found["pieces"]] == ["H", "i", " the", "<|end|>", "", "\u00e9", None]
    assert [p[2] for p in found["pieces"]] == [False, False, False, True, False, False, False]
    assert [p[3] for p in found["pieces"]] == [True, True, False, False, False, False, False]
    assert (found["special"], found["untrained"], found["unknown"], found["note"]) == (1, 2, 1, "labels repeat the tokens")


@pytest.mark.parametrize(
    ("labels", "off", "note"),
    [
        ([2, 3, 4, 5], [False] * 4, "labels hold the next token"),
        ([-100, -100, 4, 5], [False, True, True, False], "labels hold the next token"),  # target i is token i+1
        ([1, 2, 3, 4], [False] * 4, "labels repeat the tokens"),
        ([9, 8, 7, 6], [False] * 4, "labels hold other tokens"),
    ],
)
def test_how_labels_stand_to_the_tokens(labels: list[int], off: list[bool], note: str) -> None:
    shown = sample_parts.parts({"input_ids": [1, 2, 3, 4], "labels": labels}, None)["tokens"]
    assert shown[0]["note"] == note
    assert [p[3] for p in shown[0]["pieces"]] == off
    assert len(shown) == (2 if "other" in note else 1)


def test_loss_masks_and_padding_are_not_trained_on() -> None:
    row = {"tokens": [5, 6, 7, 8], "loss_mask": [0, 1, 1, 1], "attention_mask": [1, 1, 1, 0]}
    found = sample_parts.parts(row, None)["tokens"][0]
    assert [p[3] for p in found["pieces"]] == [True, False, False, True]
    assert sample_parts.parts({"tokens": [5, 6, 7, 8], "loss_mask": [1, 1, 1, 1]}, None)["tokens"][0]["untrained"] == 0


def test_a_row_of_padding_is_one_token_with_a_count() -> None:
    shown = {"data": "d", "kind": "k", "tokenizer": "", "notes": [], "why": "", "rule": "", "hidden": 0, "ordinary": []}
    token = sample_parts.parts({"input_ids": [1, 2, 2, 3, *[0] * 20]}, None)
    batch = {"count": 1, "columns": [], "samples": [{"id": 1, "odd": False, **token}]}
    head = data_section.of(shown | {"suspects": [batch]})["suspects"][0]["samples"][0]["tokens"][0]["head"]  # type: ignore[index]
    assert [(p["id"], p["times"]) for p in head] == [(1, 0), (2, 0), (2, 0), (3, 0), (0, 20)]


TOKENIZERS: dict[str, tuple[str, str, list[int], list[str | None]]] = {
    "byte_level": ("tokenizer.json", json.dumps({"model": {"vocab": {"Hi": 0, "\u0120you": 1, "\u010a": 2}}, "decoder": {"type": "ByteLevel"}}), [0, 1, 2, 3], ["Hi", " you", "\n", None]),
    "unigram": ("tokenizer.json", json.dumps({"model": {"vocab": [["<unk>", 0], ["\u2581Hi", -1], ["<0x0A>", -2]]}, "added_tokens": [{"id": 0, "content": "<unk>", "special": True}]}), [1, 2, 0], [" Hi", "\n", "<unk>"]),
    "gpt2": ("vocab.json", json.dumps({"Hi": 0, "\u0120you": 1, "<|endoftext|>": 2}), [0, 1, 2], ["Hi", " you", "<|endoftext|>"]),
    "bert": ("vocab.txt", "[PAD]\n[CLS]\nhi\n##gh\n", [1, 2, 3, 0], ["[CLS]", "hi", "##gh", "[PAD]"]),
}  # fmt: skip


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokenizers_that_lie_beside_the_data(tmp_path: Path, name: str) -> None:
    file, text, ids, pieces = TOKENIZERS[name]
    (tmp_path / file).write_text(text)
    found, troubles = token_pieces.beside([tmp_path])
    assert found is not None and not troubles
    assert found.read(ids) == pieces


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{}", '{"model": {"vocab": {"a": "x"}}}', '{"model": {"vocab": [1, 2]}}', "\x80\x04cos\nsystem\n."]
)
def test_a_damaged_tokenizer_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokenizer.json").write_text(text)
    found, troubles = token_pieces.beside([tmp_path])
    assert found is None and len(troubles) == 1 and "tokenizer.json" in troubles[0] and "\n" not in troubles[0]


def test_a_link_out_of_the_folder_is_no_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("one\ntwo\n")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "vocab.txt").symlink_to(tmp_path / "secret.txt")
    assert token_pieces.beside([tmp_path / "d"]) == (None, [])


# -- pictures and tables ----------------------------------------------------------------------------------------------


def unpacked(png: bytes) -> bytes:
    at = png.index(b"IDAT")
    return zlib.decompress(png[at + 4 : at + 4 + struct.unpack(">I", png[at - 4 : at])[0]])


@pytest.mark.parametrize(
    ("array", "channels"),
    [
        (np.full((16, 20), 200, np.uint8), 1),
        (np.full((16, 20, 3), 200, np.uint8), 3),
        (np.full((3, 16, 20), 0.5, np.float32), 3),
        (np.full((16, 20, 1), 0.5), 1),
        (np.full((16, 20), np.nan), 1),
        (np.full(784, 3, np.uint8), 1),
        (np.full((16, 20, 4), np.inf), 3),
        (np.zeros((900, 700, 3), np.uint8), 3),
    ],
)
def test_arrays_are_small_pictures(array: np.ndarray[Any, Any], channels: int) -> None:
    found = small_pictures.of("image", array)
    assert found is not None and found["channels"] == channels and max(found["width"], found["height"]) <= small_pictures.EDGE
    lines = unpacked(data_section.png(found))
    assert len(lines) == found["height"] * (1 + found["width"] * channels)


@pytest.mark.parametrize(
    "array", [np.zeros((4, 4)), np.zeros(784), np.zeros((2, 3, 4, 5)), np.zeros((0, 20)), np.zeros((16, 20, 7)), [[1, 2], [3]]]
)
def test_other_arrays_are_none(array: Any) -> None:
    assert small_pictures.of("features", array) is None


def picture_bytes(width: int = 40, height: int = 20, kind: str = "PNG") -> bytes:
    image = pytest.importorskip("PIL.Image")
    held = io.BytesIO()
    image.new("RGB", (width, height), (250, 10, 10)).save(held, kind, comment=b"camera owner") if kind == "JPEG" else image.new(
        "RGB", (width, height), (250, 10, 10)
    ).save(held, kind)
    return held.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_picture_files_come_back_as_pixels(kind: str) -> None:
    found = small_pictures.of("image", {"bytes": picture_bytes(kind=kind), "path": None})
    assert found is not None and (found["width"], found["height"], found["channels"]) == (40, 20, 3)
    assert b"camera owner" not in found["pixels"] and abs(found["pixels"][0] - 250) < 8


def bomb() -> bytes:
    """A PNG that says it has 100,000 x 100,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("data", [bomb(), b"\x89PNG\r\n\x1a\n" + b"\0" * 50, b"\xff\xd8\xff" + b"x" * 500, b"\xff\xd8\xff"])
def test_bombs_and_damaged_pictures_are_a_sentence(data: bytes) -> None:
    pytest.importorskip("PIL.Image")
    found = small_pictures.of("image", data)
    assert found is not None and not found["pixels"] and found["says"]


def test_a_folder_of_pictures_and_an_archive(run: Path, tmp_path: Path) -> None:
    small = picture_bytes(8, 8)
    for name in ("cats", "dogs"):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for i in range(ROWS // 2):
            (tmp_path / "pictures" / name / f"{i:03}.png").write_bytes(small)
    assert call("analyze", run, "--data", tmp_path / "pictures", "--show-data", "--out", tmp_path / "r.html").exit_code == 0
    page = (tmp_path / "r.html").read_text()
    assert "data:image/png;base64," in page and "img-src data:" in page and "cats/000.png" in page
    case = json.loads((tmp_path / "r.case.json").read_text())
    assert case["suspects"]["why"], "pictures are not compared, and that counts for nothing"
    np.savez(tmp_path / "a.npz", image=np.zeros((ROWS, 12, 12), np.uint8), label=np.arange(ROWS) % 10)
    row = open_data(tmp_path / "a.npz").get([7])[0]
    assert row["image"].shape == (12, 12) and row["label"] == 7


def test_an_archive_with_pickles_or_lies_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([{"a": 1}], dtype=object))
    (tmp_path / "b.npz").write_bytes(b"PK\x03\x04" + b"\0" * 200)
    for name in ("a.npz", "b.npz"):
        with pytest.raises(Unreadable):
            open_data(tmp_path / name)


def test_numbers_of_a_column_beside_ordinary_ones() -> None:
    rng = np.random.default_rng(0)
    usual = column_numbers.gathered([{"id": i, "age": float(rng.normal()), "income": float(rng.normal())} for i in range(40)])
    odd = column_numbers.gathered([{"id": 1, "age": float("nan"), "income": 90.0}, {"id": 2, "age": 0.1, "income": 0.2}])
    same = column_numbers.gathered([{"id": 1, "age": 0.3, "income": 0.2}])
    assert [(c["name"], c["outside"]) for c in column_numbers.beside(odd, usual)] == [("age", True), ("income", True)]
    assert [c["outside"] for c in column_numbers.beside(same, usual)] == [False, False]


@pytest.mark.parametrize(
    "value",
    [None, True, 10**400, "x" * 10_000, b"\0" * 99, [1, "a", {}], {"a": {"b": [1]}}, float("inf"), np.float32("nan"), list(range(99))],
)
def test_any_cell_is_short_and_of_a_plain_kind(value: Any) -> None:
    found = sample_parts.cell(value)
    assert found is None or isinstance(found, (bool, int, float, str))
    assert len(json.dumps(found, allow_nan=False)) < 400
