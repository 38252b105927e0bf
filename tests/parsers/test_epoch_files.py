"""A log of a row an epoch beside one of a row a step, in one folder."""

from __future__ import annotations

from pathlib import Path

import pytest

import parsers
from tests.parsers.test_speed_paths import events

EPOCHS, LENGTH = range(1, 9), 50


def value(epoch: int, batch: int) -> float:
    return float(4 / (epoch + batch / LENGTH))


def write(folder: Path, *, factor: float = 1.0, epochs: range = EPOCHS) -> None:
    steps = [f"epoch {e} batch {b} train_loss {value(e, b):.4f}" for e in EPOCHS for b in range(4, LENGTH, 10)]
    (folder / "log.txt").write_text("\n".join(steps) + "\n")
    rows = [f"epoch: {e}, lr: {1e-3 / e:.2e} - train loss: {factor * value(e, 25):.2f} - valid loss: {value(e, 10):.2f}" for e in epochs]
    (folder / "train_log.txt").write_text("\n".join(rows) + "\n")


def test_they_are_one_run_on_the_axis_of_steps(tmp_path: Path) -> None:
    write(tmp_path)
    runs = parsers.read_all(tmp_path)
    assert len(runs) == 1
    rows = [r for r in runs[0].tables["metrics"].to_pylist() if r["source"] == "train_log.txt" and r["name"] == "lr"]
    ends = {r["step"] for r in runs[0].tables["metrics"].to_pylist() if r["source"] == "log.txt" and r["name"] == "loss.train"}
    assert len(rows) == len(EPOCHS)
    assert {r["step"] for r in rows} <= ends
    assert max(r["step"] for r in rows) == max(ends)
    assert len(runs[0].attempts) == 1


@pytest.mark.parametrize(("factor", "epochs"), [(5.0, EPOCHS), (1.0, range(1, 6))], ids=["other values", "fewer epochs"])
def test_others_are_runs_of_their_own(tmp_path: Path, factor: float, epochs: range) -> None:
    write(tmp_path, factor=factor, epochs=epochs)
    assert len(parsers.read_all(tmp_path)) == 2


@pytest.mark.parametrize("twice", [False, True], ids=["once", "of two seeds"])
def test_a_console_that_counts_from_one_and_a_tracker_that_counts_from_zero(twice: bool, tmp_path: Path) -> None:
    """The console prints every fifth epoch of two metrics; where it tells an epoch twice, with other values, it is of another life, too."""
    (store := tmp_path / "mlruns" / "0" / "5cf4aac186564e29b068e75a07edd47e" / "metrics").mkdir(parents=True)
    for name, scale in (("recon", 1.0), ("kl", 0.1)):
        (store / name).write_text("".join(f"{1_795_795_677_000 + 60 * e} {scale * value(e + 1, 0)} {e}\n" for e in range(30)))
    said = "".join(f"  ep {e}: recon {value(e, 0):.3f} kl {0.1 * value(e, 0):.3f}\n" for e in range(5, 31, 5))
    (tmp_path / "console.txt").write_text("run of a vae\n" + said + (said.replace(" 0.", " 1.") if twice else ""))
    assert (len(parsers.read_all(tmp_path)) > 1) is twice


def test_a_table_of_epochs_that_are_called_ep(tmp_path: Path) -> None:
    steps = [f"{50 * e + b},{e},{value(e + 1, b) ** 2:.5f}" for e in range(6) for b in range(4, LENGTH, 10)]
    (tmp_path / "batches.csv").write_text("\n".join(["it,ep,mse", *steps, ""]))
    rows = [f"{e},{value(e + 1, 25):.4f},{value(e + 1, 20):.4f}" for e in range(6)]
    (tmp_path / "epochs.csv").write_text("\n".join(["ep,rmse_tr,rmse_va", *rows, ""]))
    assert len(parsers.read_all(tmp_path)) == 1


@pytest.mark.parametrize(("factor", "last"), [(1.0, 2900), (1.1, 28)], ids=["the same values", "other values"])
def test_event_files_of_epochs_beside_a_console_that_counts_both(factor: float, last: int, tmp_path: Path) -> None:
    """Keras: its callback counts epochs from 0, the console from 1 and has the batches, too."""
    console = [f"Epoch {e}/29\n100/100 - 1s - 9ms/step - loss: {value(e, 25):.4f} - val_loss: {value(e, 10):.4f}" for e in range(1, 30)]
    (tmp_path / "train.log").write_text("\n".join(console) + "\n")
    (tmp_path / "logs").mkdir()
    rows = [(e - 1, tag, factor * value(e, batch)) for e in range(1, 30) for tag, batch in (("epoch_loss", 25), ("epoch_val_loss", 10))]
    events(tmp_path / "logs" / "events.out.tfevents.1700000000.host.1.0", rows)
    run = parsers.read_all(tmp_path)[0]
    assert {r["tag"]: r["step"] for r in run.tables["metrics"].to_pylist() if r["tag"] == "epoch_loss"} == {"epoch_loss": last}


def test_a_launch_that_takes_up_an_epoch_does_so_at_its_first_step(tmp_path: Path) -> None:
    """A log of epochs says what the table of epochs says, and a table of batches in which epoch each step is."""
    (tmp_path / "batches.csv").write_text(
        "epoch,step,loss\n" + "".join(f"{e},{50 * e + b},{value(e + 1, b):.5f}\n" for e in range(12) for b in range(0, 50, 5))
    )
    (tmp_path / "epochs.csv").write_text(
        "epoch,training_loss,lr\n" + "".join(f"{e},{value(e + 1, 25):.5f},{1e-3 / (e + 1):.5e}\n" for e in range(12))
    )
    lines = [f"{e:6d}  LR {1e-3 / (e + 1):.2e}  train loss {value(e + 1, 25):10.5f}" for e in range(12)]
    lines.insert(6, "Restarting from run/last.pkl at epoch 6")
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    (run,) = parsers.read_all(tmp_path)
    assert [tuple(a["steps"]) for a in run.attempts] == [(0, 295), (300, 595)]
