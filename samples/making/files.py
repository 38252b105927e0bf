"""Loggers that write text files: YAML and JSON configs, JSONL, CSV, Lightning, Keras and Hugging Face layouts."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from making.clock import stamp
from making.data import Task
from making.training import Config, Row

NAMES = {
    "loss": "train/loss",
    "val_loss": "val/loss",
    "lr": "train/lr",
    "grad_norm": "train/grad_norm",
    "loss_scale": "train/loss_scale",
    "step_time": "perf/step_time",
    "tokens_per_sec": "perf/tokens_per_sec",
}


def short(value: Any) -> Any:
    """Six significant digits: as much as a float32 holds, and the same on every machine."""
    return float(f"{value:.6g}") if isinstance(value, float) and abs(value) < 1e6 else value  # clocks stay whole


def config_yaml(folder: Path, config: Config, name: str = "config.yaml") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(yaml.safe_dump(config, sort_keys=False))


def config_json(folder: Path, config: Config, name: str = "config.json") -> None:
    (folder / name).write_text(json.dumps(config, indent=2) + "\n")


def lines(path: Path, text: Iterable[str], mode: str = "w") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open(mode, encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in text)


def jsonl(path: Path, rows: list[Row], names: dict[str, str] = NAMES, mode: str = "w") -> None:
    """A line a row: step, the logged values, the time; NaN as Python's json writes it."""

    def line(row: Row) -> str:
        values = {names[key]: short(value) for key, value in row.items() if key in names}
        return json.dumps({"step": row["step"], **values, "time": round(row["time"], 3)})

    lines(path, (line(row) for row in rows), mode)


def manifest_jsonl(path: Path, rows: list[Row], task: Task, mode: str = "w") -> None:
    """Which samples of which shards each step saw, as a data loader would record it."""

    def line(row: Row) -> str:
        shards = sorted({task.shard(i) for i in row["ids"]})
        return json.dumps({"step": row["step"], "shards": shards, "sample_ids": row["ids"]})

    lines(path, (line(row) for row in rows), mode)


def manifest_csv(path: Path, rows: list[Row], task: Task) -> None:
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["step", "shards", "sample_ids"])
        for row in rows:
            shards = sorted({task.shard(i) for i in row["ids"]})
            out.writerow([row["step"], ";".join(shards), ";".join(map(str, row["ids"]))])


def table(path: Path, rows: list[Row], names: dict[str, str], step: str = "step") -> None:
    """A CSV with one line a row; what a row lacks stays empty."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([step, *names.values()])
        for row in rows:
            out.writerow([row["step"], *(short(row.get(key, "")) for key in names)])


def lightning(folder: Path, rows: list[Row], config: Config, epoch: int, log_every: int = 5) -> None:
    """Lightning's CSVLogger: sparse lines, steps from 0, the rate monitor and the evaluation on lines of their own.

    ``epoch``: steps in an epoch.
    """
    config_yaml(folder, config, "hparams.yaml")
    with (folder / "metrics.csv").open("w", newline="") as file:
        out = csv.DictWriter(file, ["epoch", "grad_norm", "lr-AdamW", "step", "train_loss", "val_loss"], lineterminator="\n")
        out.writeheader()
        for row in rows:
            place = {"epoch": (row["step"] - 1) // epoch, "step": row["step"] - 1}
            if row["step"] % log_every == 0:
                out.writerow({"lr-AdamW": short(row["lr"]), "step": place["step"]})
                out.writerow({**place, "grad_norm": short(row["grad_norm"]), "train_loss": short(row["loss"])})
            if "val_loss" in row:
                out.writerow({**place, "val_loss": short(row["val_loss"])})


def interval_means(rows: list[Row], size: int) -> list[float]:
    """What Hugging Face's Trainer logs as loss: the mean over the steps since its last log."""
    losses = [row["loss"] for row in rows]
    return [sum(losses[i : i + size]) / size for i in range(0, len(losses), size)]


def trainer_state(
    folder: Path, rows: list[Row], config: Config, epoch: int, log_every: int = 10, losses: list[float] | None = None
) -> None:
    """Hugging Face's ``trainer_state.json``: loss as interval mean, gradient norm and rate of the interval's last step.

    ``epoch``: steps in an epoch; ``losses`` replaces the interval means.
    """
    folder.mkdir(parents=True, exist_ok=True)
    losses = losses or interval_means(rows, log_every)
    history: list[dict[str, Any]] = []
    for row in rows:
        place = {"epoch": short(row["step"] / epoch), "step": row["step"]}
        if row["step"] % log_every == 0:
            values = {
                "grad_norm": short(row["grad_norm"]),
                "learning_rate": short(row["lr"]),
                "loss": short(losses[row["step"] // log_every - 1]),
            }
            history.append({"epoch": place["epoch"], **values, "step": place["step"]})
        if "val_loss" in row:
            history.append({"epoch": place["epoch"], "eval_loss": short(row["val_loss"]), "eval_runtime": 1.2, "step": place["step"]})
    took = sum(row["step_time"] for row in rows)
    if rows[-1]["step"] == config["max_steps"]:
        history.append(
            {
                "epoch": short(rows[-1]["step"] / epoch),
                "step": rows[-1]["step"],
                "total_flos": 0.0,
                "train_loss": short(math.fsum(losses) / len(losses)),
                "train_runtime": short(took),
                "train_steps_per_second": short(len(rows) / took),
            }
        )
    state = {
        "best_global_step": None,
        "best_metric": None,
        "best_model_checkpoint": None,
        "epoch": short(rows[-1]["step"] / epoch),
        "eval_steps": config["eval_every"],
        "global_step": rows[-1]["step"],
        "is_hyper_param_search": False,
        "is_local_process_zero": True,
        "is_world_process_zero": True,
        "log_history": history,
        "logging_steps": log_every,
        "max_steps": config["max_steps"],
        "num_input_tokens_seen": 0,
        "num_train_epochs": math.ceil(config["max_steps"] / epoch),
        "save_steps": config["max_steps"],
        "stateful_callbacks": {},
        "total_flos": 0.0,
        "train_batch_size": config["batch_size"],
        "trial_name": None,
        "trial_params": None,
    }
    (folder / "trainer_state.json").write_text(json.dumps(state, indent=2) + "\n")


def keras(path: Path, rows: list[Row], epoch: int) -> None:
    """Keras' CSVLogger: one line an epoch, the loss averaged over it, the evaluation at its end."""
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["epoch", "learning_rate", "loss", "val_loss"])
        for number, mean in enumerate(interval_means(rows, epoch)):
            last = rows[(number + 1) * epoch - 1]
            out.writerow([number, short(last["lr"]), short(mean), short(last["val_loss"])])


def banner(row: Row, text: str) -> str:
    return f"[{stamp(row['time'] - row['step_time'])}] {text}"
