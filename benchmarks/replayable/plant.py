"""Plants a fault in a small real training: one run folder and one truth file each.

A plant is data that is changed, a setting, or something done to the state while it runs (hardware, a resume that forgets).
`state x data` is planted by search: the size of the rate's jump is the first one at which the batch makes a spike there, three
others there do not, and the batch without the jump does not; these runs are made for real before the plant is kept.
"""

from __future__ import annotations

import copy
import importlib.util
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
Hook = Callable[[Any, Any, int], None]


@dataclass
class Plant:
    name: str
    verdict: str
    config: dict[str, Any]
    culprits: dict[int, list[int]] = field(default_factory=dict)  # step -> positions in its batch
    data: Callable[[dict[str, Any], Any], None] | None = None
    grads: Hook | None = None  # called before the optimizer's step
    after: Hook | None = None
    resume: dict[str, Any] = field(default_factory=dict)  # {"at", "forget", "rate", "stale"}: the step whose moments are put in again
    log: str = "jsonl"  # jsonl (from 0), csv (from 1), mean (of five, from 1)
    replay: dict[str, Any] = field(default_factory=dict)  # options of the command
    edit: dict[str, Any] = field(default_factory=dict)  # settings that the adapter sees and the training did not have
    every: int = 50  # steps between checkpoints; 0: none


TEXT = {
    "task": "text",
    "model": "transformer",
    "width": 32,
    "words": 24,
    "batch": 16,
    "steps": 300,
    "optimizer": "adamw",
    "lr": 3e-3,
    "warmup": 20,
    "seed": 1,
    "order": 11,
    "rows": 6400,
}
GRU = TEXT | {"model": "gru", "lr": 4e-3, "seed": 2, "order": 23}
KINDS = {
    "task": "classes",
    "width": 48,
    "classes": 8,
    "batch": 32,
    "steps": 300,
    "optimizer": "adamw",
    "lr": 2e-3,
    "warmup": 5,
    "seed": 3,
    "order": 31,
    "rows": 12000,
    "model": "mlp",
}
LINE = {
    "task": "regression",
    "width": 48,
    "batch": 32,
    "steps": 300,
    "optimizer": "sgd",
    "lr": 0.01,
    "warmup": 5,
    "seed": 4,
    "order": 41,
    "rows": 12000,
    "model": "mlp",
}


def make_data(config: dict[str, Any]) -> dict[str, Any]:
    """Rows that can be learnt: sequences of a random grammar, blobs of classes, a smooth function."""
    import torch

    g = torch.Generator().manual_seed(config["seed"] * 7 + 5)
    n = config["rows"]
    if config["task"] == "text":
        words = config["words"]
        table = torch.softmax(2.5 * torch.randn(words, words, generator=g), 1)
        x = torch.zeros(n, 33, dtype=torch.long)
        x[:, 0] = torch.randint(words, (n,), generator=g)
        for t in range(32):
            x[:, t + 1] = torch.multinomial(table[x[:, t]], 1, generator=g)[:, 0]
        return {"x": x[:, :-1].contiguous(), "y": x[:, 1:].contiguous()}
    if config["task"] == "classes":
        centres = 0.9 * torch.randn(config["classes"], 20, generator=g)
        y = torch.randint(config["classes"], (n,), generator=g)
        return {"x": centres[y] + torch.randn(n, 20, generator=g), "y": y}
    x = torch.randn(n, 12, generator=g)
    y = torch.tanh(x @ torch.randn(12, generator=g) / 2) + 0.3 * x[:, 0] * x[:, 1] + 0.1 * torch.randn(n, generator=g)
    return {"x": x, "y": y}


def training(folder: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"train_{folder.name}", folder / "train.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(plant: Plant, root: Path, quiet: bool = False) -> list[float]:
    """Trains it, writes the folder and its truth; returns the losses. With `quiet` nothing but the losses is kept."""
    import torch

    torch.set_num_threads(1)
    folder = root / ("tried" if quiet else "runs") / plant.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(HERE / "train.py", folder)
    (folder / "config.json").write_text(json.dumps(plant.config, indent=1))
    torch.save(make_data(plant.config), folder / "data.pt")
    module = training(folder)
    if plant.data:
        plant.data(module.DATA, module)
        torch.save(module.DATA, folder / "data.pt")
    truth = {"id": plant.name, "verdict": plant.verdict, "replay": plant.replay, "culprits": [
        {"step": s + (plant.log != "jsonl"), "samples": sorted(int(module.rows_at(s)[i]) for i in rows)} for s, rows in sorted(plant.culprits.items())]}  # fmt: skip
    values = _train(plant, module, quiet)
    if plant.edit:
        (folder / "config.json").write_text(json.dumps(plant.config | plant.edit, indent=1))
    if not quiet:
        (root / "truth").mkdir(exist_ok=True)
        (root / "truth" / f"{plant.name}.json").write_text(json.dumps(truth, indent=1))
    return values


def _train(plant: Plant, module: Any, quiet: bool) -> list[float]:
    model, optimizer, scheduler = module.build()
    rows: list[dict[str, float]] = []
    handle = None
    state, early = {"step": 0}, {}
    if plant.grads:
        handle = optimizer.register_step_pre_hook(lambda *a: plant.grads(model, optimizer, state["step"]))  # type: ignore[misc]
    for step in range(plant.config["steps"]):
        state["step"] = step
        if plant.every and step and step % plant.every == 0 and not quiet:
            module.save(model, optimizer, scheduler, step)
        if step == plant.resume.get("stale"):
            early = copy.deepcopy(optimizer.state_dict()["state"])
        if plant.resume and step == plant.resume["at"] and "optimizer" in plant.resume["forget"]:
            optimizer.state.clear()
        if "stale" in plant.resume and step == plant.resume["at"]:
            optimizer.load_state_dict({"state": early, "param_groups": optimizer.state_dict()["param_groups"]})
        lr = optimizer.param_groups[0]["lr"] * (plant.resume.get("rate", 1.0) if plant.resume and step >= plant.resume["at"] else 1.0)
        for g in optimizer.param_groups:
            g["lr"] = lr
        value, norm = module.train_step(model, optimizer, scheduler, module.batch(step))
        if plant.after:
            plant.after(model, optimizer, step)
        rows.append({"step": step, "loss": value, "grad_norm": norm, "lr": lr})
        if plant.resume and step == plant.resume["at"]:
            rows[-1]["rate"] = plant.resume.get("rate", 1.0)
    if handle:
        handle.remove()
    if not quiet:
        _log(plant, module, rows)
    return [r["loss"] for r in rows]


def _log(plant: Plant, module: Any, rows: list[dict[str, float]]) -> None:
    import csv

    folder = module.HERE
    at = plant.resume.get("at") if plant.resume else None
    if plant.log == "jsonl":
        with (folder / "metrics.jsonl").open("w") as f, (folder / "data_order.jsonl").open("w") as order:
            for r in rows:
                rate = r.pop("rate", 1.0)
                if at is not None and r["step"] == at:  # the life before had come one step further
                    f.write(json.dumps(r | {"lr": r["lr"] / rate}) + "\n")
                f.write(json.dumps(r) + "\n")
                order.write(json.dumps({"step": r["step"], "ids": module.rows_at(r["step"]).tolist()}) + "\n")
        return
    with (folder / "log.csv").open("w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["step", "loss", "grad_norm", "lr"])
        size = 5 if plant.log == "mean" else 1
        for i in range(size - 1, len(rows), size):
            mean = sum(r["loss"] for r in rows[i - size + 1 : i + 1]) / size
            w.writerow([i + 1, f"{mean:.6g}", f"{rows[i]['grad_norm']:.6g}", f"{rows[i]['lr']:.6g}"])
