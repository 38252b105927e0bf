"""csv_log: the dialects of the known writers, damage, and that the fast way and the tolerant way say the same."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import parsers
from parsers.formats import csv_log
from parsers.records import csv_blocks, line_blocks
from parsers.tables import HEAD_BYTES, Gap, Note, table_of

SHARED = Path(__file__).parents[2].parent / "shared"


class Read:
    """Everything that a parser said of a file."""

    def __init__(self, path: Path) -> None:
        self.claimed = csv_log.claims(path, path.read_bytes()[:HEAD_BYTES])
        self.gaps: list[Gap] = []
        self.notes: list[str] = []
        self.tables: dict[str, list[dict[str, Any]]] = {}
        for item in csv_log.parse(path):
            if isinstance(item, Gap):
                self.gaps.append(item)
            elif isinstance(item, Note):
                self.notes.append(item.text)
            else:
                self.tables.setdefault(table_of(item), []).extend(item.to_pylist())

    @property
    def rows(self) -> list[tuple[int | None, str, float]]:
        return [(r["step"], r["tag"], r["value"]) for r in self.tables.get("metrics", [])]

    @property
    def config(self) -> dict[str, Any]:
        return {r["key"]: json.loads(r["value"]) for r in self.tables.get("config", [])}

    def series(self, tag: str) -> list[tuple[int | None, float]]:
        return [(s, v) for s, t, v in self.rows if t == tag]

    @property
    def lost(self) -> int:
        return sum(g.lost or 0 for g in self.gaps)


def read(folder: Path, text: str | bytes, name: str = "metrics.csv") -> Read:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Read(path)


def test_lightning_sparse_rows_keep_their_order_and_lines(tmp_path: Path) -> None:
    got = read(tmp_path, "epoch,lr-Adam,step,train_loss,val_loss\n,0.1,0,,\n0,,0,2.5,\n0,,9,,nan\n1,,10,2.25,\n")
    assert got.claimed and not got.gaps
    assert [(s, t) for s, t, _ in got.rows] == [
        (0, "lr-Adam"), (0, "epoch"), (0, "train_loss"), (9, "epoch"), (9, "val_loss"),
        (10, "epoch"), (10, "train_loss"),
    ]  # fmt: skip
    assert math.isnan(got.series("val_loss")[0][1])
    assert [r["at"] for r in got.tables["metrics"]] == [2, 3, 3, 4, 4, 5, 5]


def test_header_rewritten_with_more_columns_in_the_middle(tmp_path: Path) -> None:
    got = read(tmp_path, "step,loss\n1,0.5\n2,0.4\nacc,loss,step\n0.9,0.3,3\n")
    assert got.rows == [(1, "loss", 0.5), (2, "loss", 0.4), (3, "acc", 0.9), (3, "loss", 0.3)]
    assert "another header at line 4" in got.notes and not got.gaps


def test_repeated_header_of_a_restart_is_no_row(tmp_path: Path) -> None:
    got = read(tmp_path, "step,loss\n1,0.5\n2,0.4\nstep,loss\n1,0.5\n")
    assert got.series("loss") == [(1, 0.5), (2, 0.4), (1, 0.5)]
    assert not got.gaps and any("header repeated at line 4" in n for n in got.notes)


def test_keras_counts_epochs_and_na_is_not_logged(tmp_path: Path) -> None:
    got = read(tmp_path, "epoch,loss,val_loss\r\n0,1.5,NA\r\n1,inf,1.2\r\n", "training.csv")
    assert got.rows == [(0, "epoch", 0), (0, "loss", 1.5), (1, "epoch", 1), (1, "loss", math.inf), (1, "val_loss", 1.2)]
    assert got.notes == ["steps are epochs"]


def test_ultralytics_padded_names_and_cells(tmp_path: Path) -> None:
    got = read(tmp_path, "      epoch,   train/box_loss,  lr/pg0\n          0,     0.12431,   8e-05\n          1,     0.1,   9e-05\n")
    assert got.series("train/box_loss") == [(0, 0.12431), (1, 0.1)] and got.series("lr/pg0")[0] == (0, 8e-05)


def test_monitor_counts_timesteps_and_has_a_clock(tmp_path: Path) -> None:
    text = '#{"t_start": 1700000000.5, "env_id": "CartPole-v1"}\nr,l,t\n10.0,100,1.5\n20.0,50,2.5\n'
    got = read(tmp_path, text, "0.monitor.csv")
    assert got.claimed and got.series("r") == [(100, 10.0), (150, 20.0)]
    assert [r["time"] for r in got.tables["metrics"] if r["tag"] == "r"] == [1700000002.0, 1700000003.0]
    assert got.config["env_id"] == "CartPole-v1"


def test_sb3_progress_and_ray_tune(tmp_path: Path) -> None:
    got = read(tmp_path, "rollout/ep_rew_mean,time/total_timesteps,train/loss\n9.5,2048,\n11.0,4096,0.25\n", "progress.csv")
    assert got.rows == [(2048, "rollout/ep_rew_mean", 9.5), (4096, "rollout/ep_rew_mean", 11.0), (4096, "train/loss", 0.25)]
    got = read(tmp_path, "loss,training_iteration,timestamp,trial_id,config/lr\n0.5,1,1700000000,ab12,0.1\n0.4,2,1700000009,ab12,0.1\n")
    assert got.rows == [(1, "loss", 0.5), (2, "loss", 0.4)] and got.config == {"config/lr": "0.1"}
    assert got.tables["metrics"][1]["time"] == 1700000009.0


@pytest.mark.parametrize("cell", ["1700000000", "1700000000000", "2023-11-14T22:13:20Z", "2023-11-14 22:13:20"])
def test_times_in_every_unit(tmp_path: Path, cell: str) -> None:
    got = read(tmp_path, f"step,timestamp,loss\n1,{cell},0.5\n2,{cell},0.4\n")
    assert [r["time"] for r in got.tables["metrics"]] == [1.7e9] * 2 and {t for _, t, _ in got.rows} == {"loss"}


def test_seconds_since_the_start_are_a_metric(tmp_path: Path) -> None:
    got = read(tmp_path, "step,time,loss\n1,0.5,3\n2,1.0,2\n")
    assert got.series("time") == [(1, 0.5), (2, 1.0)] and got.tables["metrics"][0]["time"] is None


def test_dvclive_tag_is_the_path_below_plots_metrics(tmp_path: Path) -> None:
    got = read(tmp_path, "timestamp\tstep\tloss\n1700000000123\t0\t1.5\n1700000000456\t1\tnan\n", "dvclive/plots/metrics/train/loss.tsv")
    assert got.series("train/loss")[0] == (0, 1.5) and got.tables["metrics"][0]["time"] == pytest.approx(1700000000.123)


def test_catboost_has_a_file_for_each_set(tmp_path: Path) -> None:
    rows = "iter\tLogloss\n0\t0.69\n1\t0.68\n"
    assert read(tmp_path, rows, "learn_error.tsv").series("train/Logloss") == [(0, 0.69), (1, 0.68)]
    assert read(tmp_path, rows, "test_error.tsv").series("test/Logloss") == [(0, 0.69), (1, 0.68)]
    assert read(tmp_path, rows, "error.tsv").series("Logloss") == [(0, 0.69), (1, 0.68)]
    several = read(tmp_path, "iter\tF1\tLogloss\n0\t0.5\t0.69\n1\t0.6\t0.68\n", "test_error.tsv")
    assert several.series("test/F1") == [(0, 0.5), (1, 0.6)] and several.series("test/Logloss") == [(0, 0.69), (1, 0.68)]


def test_web_exports_of_wandb_and_tensorboard(tmp_path: Path) -> None:
    header = '"Step","brave-owl - train/loss","brave-owl - train/loss__MIN","brave-owl - train/loss__MAX"\n'
    got = read(tmp_path, header + '"0","2.5","2.5","2.5"\n"10","2.25","1.5","3"\n', "wandb_export.csv")
    assert got.series("train/loss") == [(0, 2.5), (10, 2.25)] and got.series("train/loss__MAX") == [(0, 2.5), (10, 3.0)]
    got = read(tmp_path, '"Step","a - loss","b - loss"\n"0","2.5","3"\n', "two.csv")
    assert got.rows == [(0, "a - loss", 2.5), (0, "b - loss", 3.0)]
    got = read(tmp_path, "Wall time,Step,Value\n1700000000.5,0,2.5\n1700000001.5,1,2.25\n", "run-train-tag-loss_train.csv")
    assert got.series("loss_train") == [(0, 2.5), (1, 2.25)] and got.tables["metrics"][0]["time"] == 1700000000.5


def test_long_format_names_its_metrics_in_a_column(tmp_path: Path) -> None:
    text = "run,key,value,step,timestamp\n"
    text += "".join(f"{row},1,1700000000000\n" for row in ("r1,loss,0.5", "r1,epoch,1", "r2,loss,0.4"))
    got = read(tmp_path, text)
    assert got.rows == [(1, "loss", 0.5), (1, "epoch", 1.0), (1, "r2/loss", 0.4)]


def test_semicolons_with_decimal_commas(tmp_path: Path) -> None:
    got = read(tmp_path, "step;loss;acc\n1;0,5;1.234,5\n2;1,25e-3;0,75\n")
    assert got.rows == [(1, "loss", 0.5), (1, "acc", 1234.5), (2, "loss", 0.00125), (2, "acc", 0.75)]


def test_thousands_percent_tensors_and_windows_infinities(tmp_path: Path) -> None:
    got = read(
        tmp_path,
        'step,tokens,acc,loss,x\n1,"1,234,567",45.5%,"tensor(0.5, device=\'cuda:0\')",1.#INF\n2,"2,000",46%,tensor(0.25),-1.#IND\n',
    )
    assert got.rows[:4] == [(1, "tokens", 1234567.0), (1, "acc", 45.5), (1, "loss", 0.5), (1, "x", math.inf)]
    assert math.isnan(got.rows[-1][2]) and not got.gaps


def test_bom_utf16_and_carriage_returns(tmp_path: Path) -> None:
    text = "step,loss\r\n1,0.5\r\n2,0.25\r\n"
    for data in (b"\xef\xbb\xbf" + text.encode(), text.encode("utf-16"), text.encode("utf-16-le"), text.replace("\n", "").encode()):
        got = read(tmp_path, data)
        assert got.claimed and got.rows == [(1, "loss", 0.5), (2, "loss", 0.25)] and not got.gaps


def test_columns_without_names(tmp_path: Path) -> None:
    got = read(tmp_path, "10,0.5\n20,0.25\n30,nan\n")
    assert got.series("column_2")[:2] == [(10, 0.5), (20, 0.25)] and got.series("column_1")[2] == (30, 30.0)
    got = read(tmp_path, "# step,loss\n1,0.5\n2,0.25\n", "savetxt.csv")
    assert got.rows == [(1, "loss", 0.5), (2, "loss", 0.25)]


def test_row_numbers_are_steps_of_last_resort(tmp_path: Path) -> None:
    got = read(tmp_path, "Learning Rate\tTrain Loss\tTrain Acc.\t\n0.1\t2.5\t10\t\n0.1\t2.25\t20\t\n", "log.txt")
    assert got.claimed and got.series("Train Loss") == [(0, 2.5), (1, 2.25)] and got.notes == ["steps are row numbers"]


def test_steps_in_any_notation_and_beyond_double_precision(tmp_path: Path) -> None:
    got = read(tmp_path, "step,loss\n1e3,0.5\n2000.0,0.4\n9007199254740993,0.3\n99999999999999999999,0.2\n0.5,0.1\n")
    assert [s for s, _ in got.series("loss")] == [1000, 2000, 9007199254740993, None, None] and got.lost == 2


def test_step_columns_rank_by_name(tmp_path: Path) -> None:
    got = read(tmp_path, "Step,trainer/global_step,loss\n0,49,0.5\n1,99,0.4\n")
    assert got.rows == [(49, "Step", 0.0), (49, "loss", 0.5), (99, "Step", 1.0), (99, "loss", 0.4)]
    got = read(tmp_path, "epoch,batch,loss\n0,64,0.5\n1,64,0.4\n")
    assert got.series("loss") == [(0, 0.5), (1, 0.4)], "a constant 'batch' is a batch size"


def test_steps_that_restart_with_the_epoch_grow(tmp_path: Path) -> None:
    text = "epoch,batch,loss\n" + "".join(f"{e},{b},0.5\n" for e in (0, 1, 2, 1, 2) for b in (0, 10, 20))
    got = read(tmp_path, text)
    assert [s for s, _ in got.series("loss")] == [0, 10, 20, 30, 40, 50, 60, 70, 80, 30, 40, 50, 60, 70, 80]
    text = "epoch,step,loss\n" + "".join(f"{e},{s},0.5\n" for e, s in [(0, 1), (0, 2), (1, 3), (1, 4), (1, 3), (2, 5)])
    assert [s for s, _ in read(tmp_path, text).series("loss")] == [1, 2, 3, 4, 3, 5], "a rollback is no restart of the epoch"


def test_text_columns_are_config_or_a_note(tmp_path: Path) -> None:
    got = read(tmp_path, "step,model,phase,loss\n1,resnet,train,0.5\n2,resnet,val,0.4\n")
    assert got.config == {"model": "resnet"} and got.notes == ["column 'phase' is text"]
    got = read(tmp_path, "step,api_key,loss\n1,abcdefgh,0.5\n")
    assert got.config == {"api_key": "***"}


def test_ranks(tmp_path: Path) -> None:
    got = read(tmp_path, "step,rank,loss\n1,0,0.5\n1,1,0.25\n")
    assert [(r["rank"], r["value"]) for r in got.tables["metrics"]] == [(0, 0.5), (1, 0.25)]


def test_manifest_one_row_a_sample(tmp_path: Path) -> None:
    got = read(tmp_path, 'step,epoch,batch_id,shards,sample_ids\n1,0,0-0,a.tar,7 3 5\n2,0,0-1,a.tar;b.tar,"[1, 2]"\n3,0,0-2,a;b,9\n')
    batches = [(r["step"], r["position"], r["sample"], r["shard"], r["how"], r["at"]) for r in got.tables["batches"]]
    assert batches == [
        (1, 0, "7", "a.tar", "recorded", 2), (1, 1, "3", "a.tar", "recorded", 2), (1, 2, "5", "a.tar", "recorded", 2),
        (2, 0, "1", "a.tar", "recorded", 3), (2, 1, "2", "b.tar", "recorded", 3),
        (3, 0, "9", None, "recorded", 4), (3, None, None, "a", "recorded", 4), (3, None, None, "b", "recorded", 4),
    ]  # fmt: skip
    assert "metrics" not in got.tables


def test_manifest_with_a_row_for_each_sample_and_metrics_beside(tmp_path: Path) -> None:
    got = read(tmp_path, "step,sample_id,source\n1,a1,web\n1,a2,code\n2,a3,web\n", "order.tsv".replace("tsv", "csv"))
    assert [(r["step"], r["position"], r["sample"], r["shard"]) for r in got.tables["batches"]] == [
        (1, 0, "a1", "web"), (1, 1, "a2", "code"), (2, 0, "a3", "web")
    ]  # fmt: skip
    got = read(tmp_path, "step,loss,sample_ids\n1,0.5,4 5\n")
    assert got.rows == [(1, "loss", 0.5)] and [r["sample"] for r in got.tables["batches"]] == ["4", "5"]
    got = read(tmp_path, "step,loss,samples\n1,0.5,256\n2,0.4,512\n")
    assert got.series("samples") == [(1, 256.0), (2, 512.0)], "a count of samples is no id"


def test_quoted_cells_over_several_lines(tmp_path: Path) -> None:
    got = read(tmp_path, 'step,grid,loss\n1,"[1 2\n 3 4]",0.5\n2,"[5 6\n 7 8]",0.25\n')
    assert got.rows == [(1, "loss", 0.5), (2, "loss", 0.25)] and [r["at"] for r in got.tables["metrics"]] == [2, 4]


@pytest.mark.parametrize(("name", "logged"), [("Image Name", False), ("phase", True)])
def test_a_row_an_image_is_no_log(name: str, logged: bool, tmp_path: Path) -> None:
    """What a test made of each sample, in the order of the files."""
    got = read(tmp_path, f"{name},PSNR (dB),MAE\n" + "".join(f"{i:05d}.png,{29 + i % 5},{0.8 + i / 100}\n" for i in range(12)))
    assert bool(got.rows) is logged and len(got.notes) >= 1


def test_a_data_set_is_not_a_log(tmp_path: Path) -> None:
    for text in ("text,label\nhello,1\nworld,0\n", "id,prediction\n1,0.5\n2,0.25\n", "a,b\nx,y\n"):
        got = read(tmp_path, text)
        assert got.claimed and not got.rows and len(got.notes) == 1


# -- damage


def test_torn_last_line(tmp_path: Path) -> None:
    got = read(tmp_path, "step,loss,acc\n1,0.5123,0.25\n2,0.4123,0.26\n3,0.3")
    assert [s for s, _ in got.series("loss")] == [1, 2] and got.gaps == [Gap("line 4", "the last line is cut off", 1)]
    got = read(tmp_path, "step,loss\n1,0.51234\n2,0.41234\n3,0.3")
    assert [s for s, _ in got.series("loss")] == [1, 2] and got.lost == 1, "the cut may have gone through the number"
    got = read(tmp_path, "step,loss\n1,0.51234\n2,0.41234\n3,0.31234")
    assert [s for s, _ in got.series("loss")] == [1, 2, 3] and not got.gaps


def test_row_torn_by_a_crash_and_followed_by_the_next_launch(tmp_path: Path) -> None:
    got = read(tmp_path, "step,loss,acc\n1,0.5,0.1\n2,0.42,0.4,0.2\n3,0.3,0.3\n4,0.\n5,0.1,0.5\n")
    assert [s for s, _ in got.series("loss")] == [1, 3, 5]
    assert [(g.at, g.lost) for g in got.gaps] == [("line 3", 1), ("line 5", 1)]


def test_nul_holes_cost_only_the_row_they_cut(tmp_path: Path) -> None:
    hole = b"\x00" * 5000
    got = read(tmp_path, b"step,loss\n1,0.5\n2,0.4" + hole + b"3,0.3\n4,0.2\n" + hole)
    assert got.claimed and [s for s, _ in got.series("loss")] == [1, 3, 4] and got.lost == 1
    assert [g.at for g in got.gaps] == ["line 3", "line 5"]


def test_a_preallocated_tail_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_bytes(b"step,loss\n1,0.5\n")
    with path.open("r+b") as f:
        f.truncate(300 << 20)
    got = [x for x in line_blocks.blocks(path) if not isinstance(x, Gap)]
    assert sum(len(data) for _, data in got) < 1000


def test_bad_cells_cost_themselves(tmp_path: Path) -> None:
    got = read(tmp_path, b"step,loss,acc\n1,0.5,0.1\n2,0.\xff4,0.2\n3,0.3,0.3\n")
    assert got.series("acc") == [(1, 0.1), (2, 0.2), (3, 0.3)] and got.series("loss") == [(1, 0.5), (3, 0.3)]
    assert got.gaps == [Gap("line 3", "column 'loss': no number", 1)]


def test_columns_that_their_writer_sorts_are_not_named_by_their_place(tmp_path: Path) -> None:
    """Keras' CSVLogger appends to the file of the launch before, sorted anew with the metric that this one has more."""
    rows = "".join(f"{i},0.5,{3 - i / 10}\n" for i in range(5)) + "".join(f"{i},0.5,0.{i},{3 - i / 10}\n" for i in range(5, 9))
    (tmp_path / "history.csv").write_text("epoch,acc,loss\n" + rows)
    run = parsers.read(tmp_path)
    assert [g.what for g in run.gaps] == ["4 columns where the header has 3 (to line 10)"]
    assert run.gaps[0].lost == 4
    assert max(run.tables["metrics"]["step"].to_pylist()) == 4


def test_wider_and_narrower_rows_are_believed_when_they_repeat(tmp_path: Path) -> None:
    got = read(tmp_path, "step,loss\n1,0.5\n2,0.4,7\n3,0.3,8\n4,0.2,9\n")
    assert got.series("loss") == [(1, 0.5), (2, 0.4), (3, 0.3), (4, 0.2)] and got.series("column_3") == [(2, 7), (3, 8), (4, 9)]
    got = read(tmp_path, "step,loss,val_loss\n1,0.5\n2,0.4\n3,0.3,0.35\n4,0.2\n")
    assert got.series("loss") == [(1, 0.5), (2, 0.4), (3, 0.3), (4, 0.2)] and not got.gaps


def test_an_unclosed_quote_costs_one_row(tmp_path: Path) -> None:
    got = read(tmp_path, 'step,loss,note\n1,0.5,a\n2,"0.4,b\n3,0.3,c\n4,0.2,d\n')
    assert [s for s, _ in got.series("loss")] == [1, 3, 4] and got.lost == 1


def test_garbage_ends_with_gaps_and_without_a_traceback(tmp_path: Path) -> None:
    rng = random.Random(7)
    good = "step,loss,acc\n" + "".join(f"{i},{1 / (i + 1):.6f},{i / 200:.3f}\n" for i in range(200))
    for _ in range(150):
        data = bytearray(good.encode())
        for _ in range(rng.randrange(1, 30)):
            i = rng.randrange(14, len(data))
            data[i : i + rng.choice((1, 1, 5))] = bytes(rng.randrange(256) for _ in range(rng.choice((0, 1, 9))))
        got = read(tmp_path, bytes(data))
        assert len(got.series("loss")) >= 100
    for nonsense in (b'"' * 5000, b"," * 5000, b'step,loss\n"' + b"1," * 9000, b"#{" + b"[" * 9000, bytes(range(256)) * 40, b"\x00" * 9000):
        read(tmp_path, nonsense)


def test_gaps_are_bounded(tmp_path: Path) -> None:
    got = read(tmp_path, "step,loss\n" + "".join(f"{i},0.5\n{i},x{i},y\n" for i in range(3000)))
    assert len(got.series("loss")) == 3000 and len(got.gaps) <= 102 and got.lost == 3000


# -- claims


@pytest.mark.parametrize("name, text", [
    ("console.txt", "Loading data, please wait\nstep 1, loss 2.5, lr 0.1\nstep 2, loss 2.25, lr 0.1\n"),
    ("log.txt", "{'loss': 2.5, 'epoch': 0.1}\n{'loss': 2.25, 'epoch': 0.2}\n"),
    ("train.log", "2024-01-01 10:00:00,123 INFO start\n2024-01-01 10:00:01,123 INFO step: 1, loss: 0.5\n"),
    ("vocab.txt", "the\t1061396\nof\t593677\n"),
    ("merges.txt", "#version: 0.2\na b\nc d\n"),
    ("data.json", '[1, 2]\n[3, 4]\n'),
    ("requirements.txt", "numpy==1.26\ntorch==2.1,>2.0\n"),
    ("metrics.csv", "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 1\n"),
    ("page.csv", "<!DOCTYPE html>\n<html>"),
    ("empty.csv", ""),
    ("poem.txt", "Shall I compare thee, to a summer's day\nThou art more lovely, and more temperate\n"),
])  # fmt: skip
def test_not_claimed(name: str, text: str) -> None:
    assert not csv_log.claims(Path("run") / name, text.encode())


@pytest.mark.parametrize("name, text", [
    ("log", "epoch,loss\n1,0.5\n2,0.4\n"), ("log.txt", "epoch\tloss\tnote\n1\t0.5\tbest\n2\t0.4\t\n"),
    ("results.dat", "step;loss\n1;0,5\n"), ("progress.csv", "a\n1\n"), ("x.tsv", "step\tloss\n"),
])  # fmt: skip
def test_claimed_by_content(name: str, text: str) -> None:
    assert csv_log.claims(Path("run") / name, text.encode())


# -- the fast way

_CELL = st.one_of(
    st.sampled_from(["", "nan", "NaN", "-inf", "inf", "NA", "None", "null", " 1.5 ", "1e5",
                     "1e999", "0x10", "abc", "+1",
                     "1_0", "-", "5%", " ", "TRUE", '"7"', "1.", ".5", "é", "12\r", "nan(x)",
                     "Infinity", "#", "-0", "007"]),
    st.floats(allow_nan=False).map(repr), st.integers(-10**6, 10**6).map(str),
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_fast_and_tolerant_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: st.DataObject) -> None:
    header = data.draw(
        st.sampled_from(["step,loss,acc", "epoch,step,loss", "epoch,batch,loss,timestamp", "loss,name,acc", "step,rank,loss", "epoch,loss"])
    )
    names = header.split(",")
    lines = [header]
    for i in range(data.draw(st.integers(20, 60))):
        plain = {"step": str(i), "batch": str(i % 7), "epoch": str(i // 7), "rank": "0", "name": "x", "timestamp": str(1700000000 + i)}
        odd = data.draw(st.integers(0, 9)) == 0
        cells = [data.draw(_CELL) if odd or (n in ("loss", "acc") and i > 25) else plain.get(n, str(i / 8)) for n in names]
        lines.append(",".join(cells) if i % 19 or not odd else data.draw(st.sampled_from(["", "1,2", header, "#x", "1,2,3,4,5"])))
    path = tmp_path / "log.csv"
    path.write_bytes("\n".join(lines).encode() + data.draw(st.sampled_from([b"\n", b""])))
    monkeypatch.setattr(line_blocks, "FIRST_BLOCK", 200)
    monkeypatch.setattr(line_blocks, "BLOCK", 150)
    fast = Read(path)
    with monkeypatch.context() as slow:
        slow.setattr(csv_blocks, "read", lambda *_: None)
        tolerant = Read(path)
    assert repr(fast.tables.get("metrics")) == repr(tolerant.tables.get("metrics"))
    assert (fast.gaps, sorted(fast.notes), fast.config) == (tolerant.gaps, sorted(tolerant.notes), tolerant.config)


def test_the_fast_way_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks: list[csv_blocks.Read | None] = []
    real = csv_blocks.read

    def watched(*arguments: Any) -> csv_blocks.Read | None:
        blocks.append(real(*arguments))
        return blocks[-1]

    monkeypatch.setattr(csv_blocks, "read", watched)
    got = read(tmp_path, "step,epoch,loss,val_loss\n" + "".join(f"{i},{i // 1000},{1 / (i + 1)},\n" for i in range(200_000)))
    assert len(blocks) > 1 and all(b is not None for b in blocks)
    assert len(got.series("loss")) == 200_000 and got.tables["metrics"][-1]["at"] == 200_001


# -- real files


@pytest.mark.skipif(not (SHARED / "open").is_dir(), reason="no shared data")
def test_real_runs_are_read_whole() -> None:
    import polars as pl

    truth = pl.read_parquet(SHARED / "open" / "runs_scalars.parquet").filter(pl.col("format") == "csv")
    missing: Counter[str] = Counter()
    for (run, file), rows in truth.group_by("run", "file"):
        got = {f"{v:.6g}" for _, _, v in Read(SHARED / "open" / "runs" / str(run) / str(file)).rows}
        missing[f"{run}/{file}"] = len({f"{v:.6g}" for v in rows["value"]} - got)
    assert len(missing) > 0 and +missing == Counter()


@pytest.mark.parametrize(("frames", "steps"), [([640, 1280, 1920, 2560], [640, 1280, 1920, 2560]), ([640, 1280, 640, 320], [0, 1, 2, 3])])
def test_frames_of_an_environment_are_steps_where_they_grow(tmp_path: Path, frames: list[int], steps: list[int]) -> None:
    text = "episode_reward,frame,value\n" + "".join(f"{i}.0,{n},0.{i}25\n" for i, n in enumerate(frames))
    (tmp_path / "progress.csv").write_text(text)
    rows = parsers.read(tmp_path).tables["metrics"].to_pylist()
    assert [r["step"] for r in rows if r["tag"] == "episode_reward"] == steps
