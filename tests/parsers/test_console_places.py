"""Where lines of a console stand in the run: bars beyond their total, epochs beside losses without a step, batches within an epoch."""

from __future__ import annotations

from pathlib import Path

import pytest

import parsers
from parsers.tables import Run


def read(tmp_path: Path, text: str, name: str = "train.log") -> Run:
    (tmp_path / name).write_text(text)
    return parsers.read(tmp_path)


def steps(run: Run, tag: str) -> list[int | None]:
    rows = run.tables["metrics"].to_pylist()
    return [r["step"] for r in rows if r["tag"] == tag]


def values(run: Run, tag: str) -> list[float]:
    rows = run.tables["metrics"].to_pylist()
    return [r["value"] for r in rows if r["tag"] == tag]


def _bars(beyond: int, total: int = 4, bare: bool = True) -> str:
    said = []
    for e in range(1, 4):
        updates = [f"Epoch {e}:   0%|          | 0/{total} [00:00<?, ?it/s]"] if bare else []
        updates += [
            f"Epoch {e}:  50%|#####     | {i}/{total} [00:0{i}<00:05, 1.00s/it, loss={9 - e - i / 10}]" for i in range(1, total + 1)
        ]
        updates += [f"Epoch {e}: {i}it [00:0{i}, 1.00s/it, loss={9 - e - i / 10}]" for i in range(total + 1, total + 1 + beyond)]
        said.append("\r".join(updates) + f"\nEpoch {e} Loss: {9 - e}.5\n")
    return "".join(said)


def test_a_bar_that_runs_beyond_its_total_lengthens_its_epoch(tmp_path: Path) -> None:
    """tqdm was told fewer batches than there are, and says ``5it`` after ``4/4``."""
    for n, bare in enumerate((True, False)):
        (folder := tmp_path / str(n)).mkdir()
        run = read(folder, _bars(beyond=2, bare=bare))
        assert steps(run, "loss") == list(range(1, 19)) and len(run.attempts) == 1
        assert steps(run, "Loss") == [6, 12, 18]


def test_a_bar_that_ends_at_its_total_counts_as_before(tmp_path: Path) -> None:
    run = read(tmp_path, _bars(beyond=0))
    assert steps(run, "loss") == list(range(1, 13)) and steps(run, "Loss") == [4, 8, 12]


def test_a_bar_without_a_total_names_its_step(tmp_path: Path) -> None:
    run = read(tmp_path, "\r".join(f"Training: {i}it [00:0{i}, 1.00it/s, loss=0.{9 - i}]" for i in range(1, 8)) + "\n")
    assert steps(run, "loss") == list(range(1, 8))


def _thousands(front: str, step: str) -> str:
    return "".join(
        f"{front}[epoch:{i // 8:3d}, iter:{step.format(n=900 + 50 * i):>8}, lr:(1.0e-04,)] l_pix: {2 - i / 20:.4e}\n" for i in range(12)
    )


def test_steps_with_commas_before_another_comma(tmp_path: Path) -> None:
    """ESRGAN and its heirs: ``iter:   1,000, lr:``, behind a clock with two digits of the year."""
    run = read(tmp_path, _thousands("26-03-01 10:00:00.123 - INFO: ", "{n:,d}"))
    assert steps(run, "l_pix") == [900 + 50 * i for i in range(12)] and len(run.attempts) == 1
    assert run.tables["metrics"]["time"].to_pylist()[0] == 1772359200.123


def test_steps_without_commas_and_lists_of_numbers_are_as_before(tmp_path: Path) -> None:
    run = read(tmp_path, _thousands("26-03-01 10:00:00 ", "{n:d}") + "weights [1,200,300,4] loss 0.5\n")
    assert steps(run, "l_pix") == [900 + 50 * i for i in range(12)]
    assert set(run.tables["metrics"]["time"].to_pylist()) == {None}, "no level behind it: a day, a month and a year in any order"
    assert 1200300.0 not in run.tables["metrics"]["value"].to_pylist()


def test_an_epoch_that_stands_with_its_time_is_the_place_of_what_is_below(tmp_path: Path) -> None:
    below = "INFO:root:\nEpoch: {e} | Epoch Time: 2{e}.50 s\nINFO:root:\tTrain: loss = 0.{d} | f1 = 0.{e}1\nTest after it\nINFO:root:\tTest: loss = 0.{d} | f1 = 0.{e}\n"
    run = read(tmp_path, "".join(below.format(e=e, d=9 - e) for e in range(6)))
    assert steps(run, "loss") == steps(run, "test loss") == steps(run, "Epoch Time") == list(range(6))
    (tmp_path / "other").mkdir()
    ended = "".join(
        f"End of epoch {e} / 9 \t Time Taken: 16{e}.5 sec\nGenerator Loss: {9 - e}.1, Discriminator Loss: 0.5\n" for e in range(5)
    )
    assert steps(read(tmp_path / "other", ended), "Generator Loss") == list(range(5))


def test_an_epoch_with_its_time_below_the_losses_heads_nothing(tmp_path: Path) -> None:
    """Losses that no line gives a step are counted, as they were."""
    text = "".join(f"loss: {2 - e / 10:.2f}\nsaved\nEpoch: {e} | Epoch Time: 2{e}.50 s\n" for e in range(9))
    assert steps(read(tmp_path, text), "loss") == list(range(1, 10))


def test_steps_through_the_run_stay_the_place_beside_the_time_of_an_epoch(tmp_path: Path) -> None:
    text = "".join(
        f"step {e * 10 + i} loss {2 - e / 10:.2f}\n" + f"Epoch {e} | Epoch Time: 2{e}.50 s\n" * (i == 9)
        for e in range(3)
        for i in range(10)
    )
    run = read(tmp_path, text)
    assert steps(run, "loss") == list(range(30)) and steps(run, "Epoch Time") == [9, 19, 29]


def test_a_count_through_the_run_beside_a_later_epoch(tmp_path: Path) -> None:
    """The first line names epoch 2 and its total is the run's: only the next epoch shows it. Evaluations of whole epochs stand at the step above them."""
    line = "ep {e:3d} it {i:5d}/550 loss 0.{i} gnorm 0.5 | 971 img/s\n"
    evaluated = "== epoch {e}: recon 0.{e} feat 0.1{e}\n"
    text = "".join(line.format(e=i // 22, i=i) + evaluated.format(e=i // 22) * (i % 100 == 0) for i in range(50, 551, 50))
    run = read(tmp_path, text)
    assert steps(run, "loss") == list(range(50, 551, 50)) and steps(run, "recon") == [100, 200, 300, 400, 500]
    saved = "saved last.pt (epoch 12)\nSIGUSR1 received, exiting for requeue\nloaded last.pt: epoch 12 step 264\n"
    parts = ["".join(line.format(e=i // 22, i=i) for i in range(*between, 20)) for between in ((20, 280), (280, 500))]
    assert steps(read(tmp_path, saved.join(parts)), "loss") == list(range(20, 500, 20))


def _described(name: str, total: int = 4) -> str:
    bar = "\r{name} {e}/3:  50%|#####     | {i}/" + str(total) + " [00:0{i}<00:05, 1.00s/it, loss={x:.1f}]"
    return "".join(bar.format(name=name, e=e, i=i, x=9 - e - i / 10) for e in range(1, 4) for i in range(1, 5)) + "\n"


def test_a_count_in_a_bars_description_is_the_epoch_of_its_count(tmp_path: Path) -> None:
    """``[fold_0] 001/200:  25%|##   | 1/4 [``: two counts to other totals, of which nothing names one."""
    run = read(tmp_path, _described("[fold_0]"))
    assert steps(run, "loss") == list(range(1, 13)) and values(run, "epoch") == [1.0] * 4 + [2.0] * 4 + [3.0] * 4


def test_a_count_with_another_name_in_a_bars_description_is_no_epoch(tmp_path: Path) -> None:
    run = read(tmp_path, _described("Fold"))
    assert not values(run, "epoch")
    (tmp_path / "same").mkdir()
    assert not values(read(tmp_path / "same", _described("[fold_0]", total=3)), "epoch"), "the bar's own count, printed twice"


def test_a_letter_that_counts_beside_the_epoch_is_the_batch(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"epoch={e} i={i}/6 total_loss={9 - e - i / 10:.2f}\n" for e in range(3) for i in range(6)))
    assert steps(run, "total_loss") == list(range(18))


def test_a_count_under_another_name_beside_the_epoch_is_none(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"epoch={e} hits={e + 2}/6 total_loss={9 - e / 10:.2f}\n" for e in range(6)))
    assert steps(run, "total_loss") == list(range(6))


_WARNED = "".join(
    f"model.py:{n}: UserWarning: the parameter 'ds' is going to be replaced\n  pooled = pool.pool_2d(ctx, ds=(7, 7), mode='average')\n"
    for n in range(3)
)


_AND_ADVISED = _WARNED.replace("replaced\n", "replaced\nFor more details and guidance see the release notes\n")


@pytest.mark.parametrize("warned", [_WARNED, _AND_ADVISED])
def test_lines_that_warnings_quote_are_no_printed_program(tmp_path: Path, warned: str) -> None:
    losses = "".join(f"Epoch 0 Update {i} Cost {9 - i / 10}\n" for i in range(1, 9))
    assert steps(read(tmp_path, warned + losses), "Cost") == list(range(1, 9))


def test_a_printed_program_measures_nothing(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(
        "import torch\nfor i in range(9):\n    loss = model(x)\n    total = loss + 1\n"
        + "    Epoch 0 Update 3 Cost 2.5\n"
        + "step 1 loss 2.0\n"
    )
    assert "Cost" not in parsers.read(tmp_path).tables["metrics"]["tag"].to_pylist()


def test_an_evaluation_that_counts_its_batches_stands_where_training_stands(tmp_path: Path) -> None:
    """timm's log file: the name of the logger in twenty columns, batches of an evaluation in brackets, means in brackets behind the values."""
    front, lines = "2026-03-02 08:00:0{},770 -                train: [    INFO] - ", list[str]()
    for epoch in range(2):
        lines += [f"{front}Train: {epoch} [  49/50 (100%)]  Loss: {2.5 - epoch} ({2.75 - epoch})  LR: 1.0e-01"]
        lines += [
            f"{front}Test: [  {i}/19]  Time: 0.005  Loss:   {2.9 - epoch} ( {2.6 - epoch + i / 100})  Acc@1:  12.0 ( {15.5 + i})"
            for i in (0, 19)
        ]
    run = read(tmp_path, "".join(line.format(i) + "\n" for i, line in enumerate(lines)))
    rows = run.tables["metrics"].to_pylist()
    found = {
        name: [(r["step"], round(r["value"], 3)) for r in rows if r["name"] == name] for name in ("loss.eval", "acc.eval", "loss.train")
    }
    assert found["loss.eval"] == [(49, 2.79), (99, 1.79)], "the mean of the whole pass"
    assert found["acc.eval"] == [(49, 34.5), (99, 34.5)]
    assert found["loss.train"] == [(49, 2.5), (99, 1.5)], "of training the value"


@pytest.mark.parametrize("head", ["[{i:8d} Epoch:", "[{i:8d}] Epoch:", "{i} Epoch: "])
def test_a_count_in_front_of_epoch_and_batch_is_the_step(tmp_path: Path, head: str) -> None:
    """DCGAN-tensorflow, which takes its counter up from the checkpoint."""
    line = head + "[{e:2d}/25] [{j:4d}/ 100] time: 4.2, d_loss: {d}"
    run = read(tmp_path, "".join(line.format(i=i, e=i // 100, j=i % 100, d=1 + i / 1e3) + "\n" for i in range(501, 800)))
    assert steps(run, "d_loss") == [*range(501, 800)]
