"""The loss of a detector that logs only its weighted terms."""

from __future__ import annotations

from pathlib import Path

import pytest

import forensics
from forensics.detectors import nonfinite
from forensics.run.series import series

HEAD = "epoch,train/box_loss,train/cls_loss,train/dfl_loss,metrics/mAP50(B),val/box_loss,val/cls_loss,val/dfl_loss\n"


def test_the_terms_of_a_detector_add_up_to_its_loss(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text(HEAD + "".join(f"{e},{2 / e},{1 / e},0.5,{0.01 * e},{3 / e},{2 / e},0.25\n" for e in range(1, 6)))
    run = forensics.read(str(tmp_path))
    train, held = series(run, "loss.train"), series(run, "loss.eval")
    assert train is not None and train.value.tolist() == pytest.approx([3 / e + 0.5 for e in range(1, 6)])
    assert held is not None and held.value.tolist() == pytest.approx([5 / e + 0.25 for e in range(1, 6)])
    assert (train.tag, held.place(run, 1)) == ("train/box_loss + train/cls_loss + train/dfl_loss", "results.csv line 3")


def test_a_term_that_is_not_finite_is_told(tmp_path: Path) -> None:
    rows = "".join(f"{e},{2 / e if e < 20 else float('nan')},{1 / e},0.5,0.1,0.3,0.2,0.25\n" for e in range(1, 31))
    (tmp_path / "results.csv").write_text(HEAD + rows)
    (found,) = nonfinite.detect(forensics.read(str(tmp_path)))
    assert (found.facts.first, found.severity) == (20, "critical")


def test_the_terms_that_deepxde_saves_under_one_name_add_up(tmp_path: Path) -> None:
    rows = "".join(
        f"{50.0 * i:.18e} {2 / (1 + i):.18e} {1 / (1 + i):.18e} {3 / (1 + i):.18e} {1 / (1 + i):.18e} {0.5:.18e}\n" for i in range(6)
    )
    (tmp_path / "loss.dat").write_text("# step, loss_train, loss_test, metrics_test\n" + rows)
    run = forensics.read(str(tmp_path))
    train, held = series(run, "loss.train"), series(run, "loss.eval")
    assert train is not None and train.value.tolist() == pytest.approx([3 / (1 + i) for i in range(6)])
    assert held is not None and held.value.tolist() == pytest.approx([4 / (1 + i) for i in range(6)])


def test_terms_that_are_only_numbered_add_up(tmp_path: Path) -> None:
    rows = "".join(f"Epoch: {e} Loss1: {1 / e:.4f} Loss2: {2 / e:.4f} Loss3: {0.5:.4f}\n" for e in range(1, 7))
    (tmp_path / "train.log").write_text(rows)
    train = series(forensics.read(str(tmp_path)), "loss.train")
    assert train is not None and train.value.tolist() == pytest.approx([3 / e + 0.5 for e in range(1, 7)], abs=1e-3)


@pytest.mark.parametrize("head", ["epoch,train/gen_loss,train/disc_loss", "epoch,train/box_loss,val/cls_loss", "epoch,loss_2,loss_4"])
def test_other_terms_do_not(head: str, tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text(f"{head}\n" + "".join(f"{e},{2 / e},{1 / e}\n" for e in range(1, 6)))
    run = forensics.read(str(tmp_path))
    assert series(run, "loss.train") is None and series(run, "loss.eval") is None
