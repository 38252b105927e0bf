"""Logs in the forms that frameworks write, each by a few lines: what is measured, at which step, under which name."""

from __future__ import annotations

import json
from pathlib import Path

import forensics
from forensics.run.series import Series, series
from parsers.tables import Run


def read(folder: Path, name: str, text: str) -> Run:
    (folder / name).write_text(text)
    return forensics.read(str(folder))


def curve(run: Run, name: str) -> list[tuple[int, float]]:
    s = series(run, name)
    assert isinstance(s, Series), name
    return list(zip(s.step.tolist(), s.value.tolist(), strict=True))


def test_marian(tmp_path: Path) -> None:
    clock = "[2026-01-02 03:04:{:02d}]"
    lines = [
        f"{clock.format(0)} [config] learn-rate: 0.003",
        f"{clock.format(0)} [config] optimizer-delay: 4",
        f"{clock.format(1)} Training started",
    ]
    for i in range(1, 6):
        lines.append(
            f"{clock.format(2 * i)} Ep. 1 : Up. {20 * i} : Sen. {640 * i:,} : Cost {4 - i / 4:.8f} * 6,397 after {640 * i:,} : Time 0.51s"
            f" : 12478.23 words/s : gNorm 0.9{i} : L.r. {i}.0000e-04"
        )
        lines.append(f"{clock.format(2 * i + 1)} [valid] Ep. 1 : Up. {20 * i} : cross-entropy : {5 - i / 4:.5f} : new best")
    run = read(tmp_path, "marian-train.log", "\n".join(lines) + "\n")
    assert curve(run, "loss.train")[:2] == [(20, 3.75), (40, 3.5)]
    assert curve(run, "loss.eval")[-1] == (100, 3.75)
    assert curve(run, "lr")[1] == (40, 2e-4)
    assert curve(run, "grad.norm")[0] == (20, 0.91)
    assert curve(run, "tput.tokens")[0] == (20, 12478.23)
    assert forensics.read(str(tmp_path)).tables["config"]["key"].to_pylist()[:2] == ["learn-rate", "optimizer-delay"]


def test_nnunet(tmp_path: Path) -> None:
    lines = [f"2026-01-02 03:04:{i:02d}.000001: batch_size 8, initial_lr 0.01" for i in range(1)]
    for epoch in range(5):
        said = [
            f"Epoch {epoch} ",
            f"Current learning rate: {0.01 - epoch / 1000:.5f} ",
            f"train_loss {0.8 - epoch / 10:.4f} ",
            f"val_loss {0.9 - epoch / 10:.4f} ",
        ]
        lines += [f"2026-01-02 03:{epoch:02d}:0{i}.000001: {text}" for i, text in enumerate([*said, "Pseudo dice [0.3, 0.0] ", " "])]
    run = read(tmp_path, "training_log_2026_1_2_03_04_00.txt", "\n".join(lines) + "\n")
    assert curve(run, "loss.train") == [(i, round(0.8 - i / 10, 4)) for i in range(5)]
    assert curve(run, "loss.eval")[2] == (2, 0.7)
    assert curve(run, "lr")[3] == (3, 0.007)


def test_dicts_with_numpy_numbers_behind_an_evaluation(tmp_path: Path) -> None:
    lines = ["{'eval_loss': 5.4925, 'step': 0}"]
    lines += [f"{{'loss': np.float64({5 - i / 10}), 'grad_norm': 5.6, 'learning_rate': 0.0003, 'epoch': {i / 20}}}" for i in range(8)]
    lines += ["{'eval_loss': 4.1, 'epoch': 0.4}"]
    run = read(tmp_path, "nohup.out", "\n".join(lines) + "\n")
    assert curve(run, "loss.train") == [(i + 1, 5 - i / 10) for i in range(8)]
    assert curve(run, "loss.eval") == [(0, 5.4925), (8, 4.1)]


def test_sums_with_their_number_and_spread(tmp_path: Path) -> None:
    """StyleGAN's stats.jsonl: of each value only the mean is a curve of its kind."""
    rows = [{"Loss/D/loss": {"num": 32, "mean": 1.3 - i / 10, "std": 0.1}, "Progress/tick": i} for i in range(4)]
    run = read(tmp_path, "stats.jsonl", "".join(json.dumps(r) + "\n" for r in rows))
    found = {tag: m.name for (_, tag), m in run.meanings.items()}
    assert found["Loss/D/loss/mean"].startswith("loss.")
    assert {found["Loss/D/loss/num"], found["Loss/D/loss/std"]} == {"other/Loss/D/loss/num", "other/Loss/D/loss/std"}


def test_a_file_for_each_epoch(tmp_path: Path) -> None:
    """AllenNLP: one run, whose epochs stand in the order of their numbers, and whose lists are of classes."""
    for epoch in range(12):
        row = {
            "epoch": epoch,
            "training_loss": 2 - epoch / 10,
            "validation_loss": 2.1 - epoch / 10,
            "validation_recall_per_class": [0.4, 0.5, 0.6],
            "weights": {"emb": 2.9},
        }
        (tmp_path / f"metrics_epoch_{epoch}.json").write_text(json.dumps(row))
    run = forensics.read(str(tmp_path))
    assert curve(run, "loss.train") == [(i, 2 - i / 10) for i in range(12)]
    assert curve(run, "loss.eval")[11] == (11, 1.0)
    assert len(run.attempts) == 1


def test_files_of_several_runs_are_no_series(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        rows = [{"epoch": i, "loss": 2 / (1 + i) + seed} for i in range(5)]
        (tmp_path / f"metrics_{seed}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert len(forensics.read(str(tmp_path)).siblings) == 2


def test_a_table_below_a_comment(tmp_path: Path) -> None:
    """DeepXDE's loss.dat beside what it prints, whose lists are no columns."""
    losses = [(50 * i, 2.0 / (1 + i), 3.0 / (1 + i)) for i in range(6)]
    said = ["Step      Train loss              Test metric", *(f"{i}         [{a:.2e}, {b:.2e}]    [{a:.2e}]" for i, a, b in losses)]
    (tmp_path / "stdout.txt").write_text("Compiling model...\n" + "\n".join(said) + "\n")
    rows = "".join(f"{i} {a:.6e} {b:.6e} nan\n" for i, a, b in losses)
    run = read(tmp_path, "loss.dat", "# DeepXDE\n# step, loss_pde, loss_bc, test_l2\n" + rows + "300 1.0\n")
    tags = set(run.tables["metrics"]["tag"].to_pylist())
    assert tags == {"loss_pde", "loss_bc", "test_l2"}
    assert next(g for g in run.gaps if "loss.dat" in g.path).at == "line 9"
    pde = run.tables["metrics"].filter([t == "loss_pde" for t in run.tables["metrics"]["tag"].to_pylist()])
    assert list(zip(pde["step"].to_pylist(), pde["value"].to_pylist(), strict=True))[:2] == [(0, 2.0), (50, 1.0)]


def test_a_table_that_was_cut_off(tmp_path: Path) -> None:
    rows = [f"{i} {1 / (1 + i):.6e}" for i in range(20)]
    odd = ["7 0.1 0.2"] * 3
    run = read(tmp_path, "loss.dat", "# step, loss\n" + "\n".join([*rows, *odd, "8 1.1"]))
    assert run.tables["metrics"]["step"].to_pylist() == list(range(20))
    assert [(g.at, g.lost) for g in run.gaps] == [("line 22", 3), ("line 25", 1)]


def test_columns_named_by_words_and_named_again(tmp_path: Path) -> None:
    rows = "".join(f"{i} {3 - i / 10:.3f} {0.001}\n" for i in range(8))
    run = read(tmp_path, "history.txt", f"# epoch train_loss lr\n{rows}# epoch train_loss val_loss\n8 2.0 2.1\n9 1.9 2.2\n")
    assert curve(run, "loss.train")[-1] == (9, 1.9)
    assert curve(run, "loss.eval") == [(8, 2.1), (9, 2.2)]


def test_glog_names_its_files_by_level(tmp_path: Path) -> None:
    lines = [f"I0830 03:14:{i:02d}.000000 140213 train.py:61] step={10 * i}, loss={2 - i / 10}" for i in range(6)]
    assert curve(read(tmp_path, "train.INFO", "\n".join(lines) + "\n"), "loss.train")[2] == (20, 1.8)


def test_the_penalty_of_trl_is_no_reward(tmp_path: Path) -> None:
    rows = [{"step": i, "ppo/mean_scores": 0.1 * i, "ppo/mean_non_score_reward": -0.2 * i} for i in range(5)]
    run = read(tmp_path, "log.jsonl", "".join(json.dumps(r) + "\n" for r in rows))
    assert next(m.name for (_, tag), m in run.meanings.items() if "non_score" in tag) == "other/ppo/mean_non_score_reward"
