"""The quick ways through the readers give what the slow ones give: columns by buffers, runs by sketches."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import parsers
from parsers import arrow, names, secrets
from parsers.records import tolerant_json
from parsers.runs import copy_prefilter


def events(path: Path, rows: list[tuple[int, str, float]], plugin: str = "") -> None:
    from google_crc32c import value as crc
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata

    def masked(data: bytes) -> bytes:
        c = crc(data)
        return (((c >> 15 | c << 17) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")

    out = b""
    for step, tag, number in rows:
        value = Summary.Value(tag=tag, simple_value=number)
        if plugin:
            value.metadata.CopyFrom(SummaryMetadata(plugin_data={"plugin_name": plugin}))
        data = Event(wall_time=1.7e9 + step, step=step, summary={"value": [value]}).SerializeToString()
        length = len(data).to_bytes(8, "little")
        out += length + masked(length) + data + masked(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(out)


def many(root: Path, count: int, same: bool = False) -> list[Path]:
    paths = []
    for i in range(count):
        r = random.Random(0 if same else i)
        tags = ["loss", "lr", f"own/{i % 3}"] if i % 2 else ["loss"]
        paths.append(root / f"run{i:02d}" / "events.out.tfevents.1.host")
        events(paths[-1], [(s, t, r.random()) for s in range(60) for t in tags])
    return paths


def test_many_runs_stay_apart_and_copies_are_found(tmp_path: Path) -> None:
    many(tmp_path / "a", 12)
    assert len(parsers.read_all(tmp_path / "a")) == 12
    r = random.Random(5)
    for name in ("x", "y"):  # one run, whose folder was copied
        r.seed(5)
        events(tmp_path / "b" / name / "events.out.tfevents.1.host", [(s, "loss", r.random()) for s in range(300)])
    for i in range(4):
        r.seed(i)
        events(tmp_path / "b" / f"other{i}" / "events.out.tfevents.1.host", [(s, "loss", r.random()) for s in range(300)])
    assert len(parsers.read_all(tmp_path / "b")) == 5


def test_a_sketch_never_says_no_to_a_copy() -> None:
    rng = np.random.default_rng(0)
    steps = np.tile(np.arange(400), 3)
    key = np.repeat(np.arange(3), 400)
    values = rng.random((5, 1200))
    values[3] = values[0] * (1 + 1e-4)  # a rounded copy
    values[4] = np.where(key == 0, rng.random(1200), values[1])  # one metric of three differs
    sketches = [copy_prefilter.sketch(["a", "b", "c"], key, steps, v) for v in values]
    alike = copy_prefilter.maybe_copies(sketches)
    assert alike[0, 3] and alike[3, 0] and alike[1, 4]
    assert not alike[0, 1] and not alike[0, 2] and not alike[1, 2] and not alike[2, 4]
    apart = [copy_prefilter.sketch(["a"], np.zeros(9, np.int64), np.arange(9) + 100 * i, rng.random(9)) for i in range(2)]
    assert copy_prefilter.maybe_copies(apart).all()  # no common step says nothing


def test_holes_and_infinities_do_not_hide_a_copy() -> None:
    rng = np.random.default_rng(0)
    steps, key = np.tile(np.arange(400), 3), np.repeat(np.arange(3), 400)
    values = rng.random((3, 1200))
    values[:, key == 0] = np.inf  # equal, but their difference is no number
    values[1] = np.where(key == 1, values[0], values[1])
    sketches = [copy_prefilter.sketch(["a", "b", "c"], key, steps, v) for v in values]
    sketches[2] = copy_prefilter.sketch(["b"], np.zeros(200, np.int64), steps[400:600], values[2, 400:600])
    alike = copy_prefilter.maybe_copies(sketches)
    assert alike[0, 1] and not alike[0, 2] and not alike[1, 2]


@pytest.mark.parametrize("folder", ["", "run1", "run1/val", "run1/loss_val", "run1/loss_", "loss/train_x", "test"])
def test_all_tags_of_a_source_mean_what_each_means(folder: str) -> None:
    tags, overrides = ["loss", "loss/train", "lr", "x/y", "val_acc"], {"loss.eval": "x/y"}
    together = names.meanings(tags, folder=folder, overrides=overrides)
    assert dict(together) == {t: names.meaning(t, folder=folder, siblings=frozenset(tags), overrides=overrides) for t in tags}


def test_columns_by_their_buffers() -> None:
    kinds: dict[pa.DataType, list[Any]] = {
        pa.int64(): [1, None, -(2**63)],
        pa.float64(): [0.5, float("inf"), None],
        pa.int32(): [None, None],
        pa.string(): ["a", None, "ü"],
    }
    for kind, column in kinds.items():
        array = arrow.column(column, kind)
        array.validate(full=True)
        assert array.to_pylist() == column
        assert array.equals(pa.array(column, kind))
    tags = arrow.column(["x", None, "y", "x"], pa.dictionary(pa.int32(), pa.string()))
    tags.validate(full=True)
    assert tags.to_pylist() == ["x", None, "y", "x"]
    for kind, column in {pa.bool_(): [True, None, False] * 5, pa.list_(pa.int64()): [[1, 2], None, [], [3]]}.items():
        array = arrow.column(column, kind)
        array.validate(full=True)
        assert array.to_pylist() == column
    assert arrow.filled(pa.array([1, None, 3]), -1).tolist() == [1, -1, 3]
    assert arrow.texts(["a\ud800"]).to_pylist() == ["a?"]
    assert arrow.nothing(70, pa.float64()).null_count == 70
    parts = pa.chunked_array([pa.array([1, None, 3]), pa.array([4, 5]).slice(1), pa.array([], pa.int64())])
    assert arrow.valid(parts).tolist() == [True, False, True, True]  # type: ignore[union-attr]
    assert arrow.values(parts)[[0, 2, 3]].tolist() == [1, 3, 5]


@pytest.mark.parametrize("odd", ["", "NaN", "nested", "text", "torn", "junk"])
def test_rows_of_a_list_in_pieces(odd: str) -> None:
    rows: list[dict[str, Any]] = [{"step": i, "loss": i / 7} for i in range(400)]
    if odd == "NaN":
        rows[200]["loss"] = float("-inf")
    elif odd == "nested":
        rows[200]["more"] = [{"a": 1}, {"b": [{"c": 2}, {"d": 3}]}]
    elif odd == "text":
        rows[200]["says"] = "},\n  {, ]} \\"
    text = '{"log_history": ' + json.dumps(rows, indent=1)
    if odd == "torn":
        text = text[: text.rindex("}")]
    elif odd == "junk":
        text = text[:9000] + "\x01" + text[9001:]
    begin = text.index("[") + 1
    found, end = tolerant_json.rows(text, begin)
    assert found == rows[: len(found)]
    if odd in ("", "NaN", "torn"):
        assert len(found) > 250
    if odd != "junk" and odd != "torn":
        assert found + json.loads("[" + text[end:]) == rows
    assert text[end:].lstrip()[:1] == "{"


def test_hints_of_secrets_are_in_any_case() -> None:
    for text in (
        "HF_abcdefghijklmnopqrst",
        "Authorization: Bearer abcdefghijkl",
        "https://a:geheim@host",
        "AWS_SECRET_ACCESS_KEY=abcdefgh",
    ):
        assert "***" in secrets.mask_text(text) or text.startswith("HF_")
    assert secrets.mask_text("hf_abcdefghijklmnopqrst") == "***"
    assert secrets.mask_text("a sample of what the model says") == "a sample of what the model says"
