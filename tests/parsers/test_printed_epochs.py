"""A console that prints a dict an epoch, beside the table that holds the same values step by step, as Lightning's folders lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import parsers
from forensics.run.series import series
from parsers.runs.equal_values import same_sequence, same_together

EVERY = 5  # steps of an epoch


def value(name: str, epoch: int, seed: int = 0) -> float:
    return float(np.random.default_rng((seed, epoch, len(name))).uniform(0.1, 0.9))


def write(folder: Path, epochs: int = 5, seed: int = 0, checked: bool = True) -> Path:
    """A table of ``epochs`` below, and what the console printed of a run of this ``seed``."""
    rows = []
    for e in range(epochs):
        rows += [f"{e},{EVERY * e + i},,,{1 / (1 + EVERY * e + i):.9f}" for i in range(EVERY)]
        rows.append(f"{e},{EVERY * e + EVERY - 1},{value('mse', e)!r},{value('csi_1', e)!r},")
    table = folder / "logs" / "version_0" / "metrics.csv"
    table.parent.mkdir(parents=True)
    table.write_text("epoch,step,val/mse,val/csi_1,train/mse\n" + "\n".join(rows) + "\n")
    said = ["{'val/mse': 0.97, 'val/csi_1': 0.03} epoch 0"] if checked else []
    for e in range(epochs):
        train = 1 / (EVERY * e + EVERY)
        said.append(
            f"{{'train/mse': {train:.4f}, 'val/mse': {value('mse', e, seed):.4f}, 'val/csi_1': {value('csi_1', e, seed):.4f}}} epoch {e}"
        )
    (folder / "stdout.txt").write_text("Seed set to 7\n" + "\n".join(said) + "\n")
    return folder


@pytest.mark.parametrize("place", ["{d} epoch {n}", "epoch {n} {d}", "epoch {n}: {d}", "{d} step {n}"])
def test_a_place_beside_a_dict_is_its_step(tmp_path: Path, place: str) -> None:
    text = "\n".join(place.format(d=f"{{'loss': {2 - n / 10}, 'acc': 0.{n}1}}", n=n) for n in range(3, 9))
    (tmp_path / "train.log").write_text(text + "\n")
    rows = parsers.read(tmp_path).tables["metrics"].to_pylist()
    assert [r["step"] for r in rows if r["tag"] == "loss"] == list(range(3, 9))


def test_an_epoch_in_the_dict_is_one_of_its_numbers(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("".join(f"{{'loss': {2 - n / 10}, 'epoch': {1 + n // 4}}}\n" for n in range(8)))
    rows = parsers.read(tmp_path).tables["metrics"].to_pylist()
    assert [r["step"] for r in rows if r["tag"] == "loss"] == list(range(1, 9))


@pytest.mark.parametrize("of", ["/400", ""])
def test_an_epoch_of_how_many_in_the_dict_is_its_place(tmp_path: Path, of: str) -> None:
    """As SlowFast prints it, with the rows of its evaluations; without the number of epochs, the lines are counted."""
    row = 'json_stats: {{"RAM": "12.4/31.1G", "_type": "{split}_epoch", "epoch": "{n}{of}", "eta": "9:47:18", "top1_acc": {n}.5, "loss": {x:.3f}}}\n'
    lines = [row.format(split=s, n=n, of=of, x=3 - n / 9) for n in range(1, 6) for s in (["train", "val"] if n % 2 == 0 else ["train"])]
    (tmp_path / "train.log").write_text("".join(lines))
    rows = parsers.read(tmp_path).tables["metrics"].to_pylist()
    losses = [(r["tag"], r["step"]) for r in rows if r["tag"].endswith("loss")]
    assert sorted(losses) == sorted(
        [("loss", n) for n in range(1, 6)] + [("val loss", 2), ("val loss", 4)]
        if of
        else [(tag, n) for n, (tag, _) in enumerate(losses, 1)]
    )
    assert {r["tag"] for r in rows if r["tag"].endswith("loss")} == {"loss", "val loss"}


@pytest.mark.parametrize("checked", [True, False])
def test_few_values_of_several_metrics_are_proof_together(tmp_path: Path, checked: bool) -> None:
    (run,) = parsers.read_all(write(tmp_path, checked=checked))
    evaluated = series(run, "loss.eval")
    assert evaluated is not None and evaluated.source == ["logs/version_0/metrics.csv"]
    assert evaluated.value.tolist() == [value("mse", e) for e in range(5)]


@pytest.mark.parametrize(("epochs", "seed"), [(5, 1), (3, 0)], ids=["other values", "too few values"])
def test_other_values_or_too_few_are_no_proof(tmp_path: Path, epochs: int, seed: int) -> None:
    assert len(parsers.read_all(write(tmp_path, epochs, seed))) == 2


def points(values: list[float]) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(len(values)), np.array(values)


def test_runs_of_one_seed_that_part_are_told_apart() -> None:
    mse, csi = ([value(name, e) for e in range(8)] for name in ("mse", "csi_1"))
    other = [value("mse", e, int(e > 4)) for e in range(8)]  # the same at first
    assert same_together([(points(mse), points(mse)), (points(csi), points(csi))])
    assert not same_together([(points(mse), points(other)), (points(csi), points(csi))])  # what both compute of the data is equal
    assert not same_together([(points(mse), points(mse)), (points([0.5] * 8), points([0.5] * 8))])  # constants say nothing
    seen = [64.0 * e for e in range(20)]
    assert not same_together([(points(seen), points(seen))])  # nor does what each run counts alike


@pytest.mark.parametrize(("before", "behind", "same"), [(1, 0, True), (0, 1, True), (1, 1, True), (2, 0, False), (3, 0, False)])
def test_one_value_more_at_either_end(before: int, behind: int, same: bool) -> None:
    own = [value("mse", e) for e in range(12)]
    more = [0.95 + e / 100 for e in range(before)] + own + [0.05] * behind
    assert same_sequence(points(own), points(more)) is same
    assert same_sequence(points(more), points(own)) is same


@pytest.mark.parametrize(
    ("tags", "trained"),
    [
        (["rain/mse", "val/mse"], "rain/mse"),
        (["rain_mse", "val_mse", "val_csi"], "rain_mse"),
        (["rain/mse", "wind/mse", "val/mse"], ""),  # which of the two is it?
        (["persistence/mse", "val/mse"], ""),
        (["rain/mae", "val/mse"], ""),
        (["rain/mse", "train/mse", "val/mse"], "train/mse"),
        (["rain/mse", "train/loss", "val/mse"], "train/loss"),
        (["test/mse", "val/mse"], ""),
    ],
)
def test_the_one_tag_that_ends_like_the_objective_of_an_evaluation_is_that_of_the_training(
    tmp_path: Path, tags: list[str], trained: str
) -> None:
    (tmp_path / "log.csv").write_text(f"step,{','.join(tags)}\n" + "".join(f"{n}{f',{1 / n:.4f}' * len(tags)}\n" for n in range(1, 9)))
    named = {r["tag"]: r["name"] for r in parsers.read(tmp_path).tables["metrics"].to_pylist()}
    assert [tag for tag, name in named.items() if name == "loss.train"] == [trained] * bool(trained)
