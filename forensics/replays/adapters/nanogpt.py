"""Scripts in the manner of nanoGPT: `ckpt.pt` with `model_args`, `config` and `iter_num`, token ids in `train.bin` and `val.bin`.

FORENSICS_MODULE names the file with the classes GPT and GPTConfig, FORENSICS_DATA the folder of the two .bin files. Such a script draws its
batches from torch's own generator, seeded at each launch: after the weights, one draw ahead of the step that uses it, with the draws
of each evaluation between. They are drawn again here in that order. Launches are told by step numbers that fall in the log.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any

RUN = Path(os.environ.get("FORENSICS_RUN", "."))
SEED = 1337  # of the script, without the number of a rank
WHAT = "the classes GPT and GPTConfig"
LOGS = ("*.log", "*.out", "*.txt")
PRECISIONS = {"bfloat16": "bf16", "float16": "fp16"}
NAMED: Any = globals().get("named_file")  # put here by the worker
_kept: dict[Any, Any] = {}


def _saved() -> list[tuple[int, str]]:
    if "saved" not in _kept:
        paths = sorted(RUN.rglob("ckpt*.pt"))
        if not paths:
            raise FileNotFoundError(f"no ckpt.pt in {RUN}")
        _kept["saved"] = sorted((int(_read(str(p))["iter_num"]), str(p)) for p in paths)
    return list(_kept["saved"])


def _read(path: str) -> Any:
    import torch

    found = torch.load(path, map_location="cpu", weights_only=True, mmap=True)  # mostly its settings alone are wanted
    for key in ("model", "optimizer", "model_args", "config", "iter_num"):
        if key not in found:
            raise ValueError(f"{path} holds no {key!r}: it is no checkpoint of such a script")
    return found


def _config() -> dict[str, Any]:
    if "config" not in _kept:
        _kept["config"] = _read(_saved()[0][1])["config"]
    return dict(_kept["config"])


def checkpoints() -> list[tuple[int, str]]:
    return _saved()


def build() -> Any:
    import torch

    file, config, first = NAMED.load(WHAT), _config(), _read(_saved()[0][1])
    on_cpu = str(config.get("device", "cuda")).startswith("cpu")
    if config.get("dropout") and on_cpu:
        raise ValueError("dropout on the CPU draws from the generator that picks the batches: their order is not known")
    torch.manual_seed(SEED)
    model = file.GPT(file.GPTConfig(**first["model_args"]))
    _kept["state"] = torch.get_rng_state()
    betas = (config["beta1"], config["beta2"])
    optimizer = model.configure_optimizers(config["weight_decay"], config["learning_rate"], betas, "cpu" if on_cpu else "cuda")
    _kept["ahead"] = _counts_ahead(first)
    return model, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, _factor)


def _factor(step: int, ahead: bool | None = None) -> float:
    """The rate of a step over the highest one: warmup, then a cosine."""
    config = _config()
    highest, warmup, end, lowest = (config[k] for k in ("learning_rate", "warmup_iters", "lr_decay_iters", "min_lr"))
    if not config.get("decay_lr", True):
        return 1.0
    ahead = _kept["ahead"] if ahead is None else ahead
    if step < warmup:
        return float((step + 1) / (warmup + 1) if ahead else step / warmup)
    if step > end:
        return float(lowest / highest)
    share = 0.5 * (1 + math.cos(math.pi * (step - warmup) / (end - warmup)))
    return float((lowest + share * (highest - lowest)) / highest)


def _counts_ahead(saved: Any) -> bool:
    """Whether the warmup begins at a share of the rate, or at 0: by the rate that a checkpoint of the warmup holds; a later one does not say,
    and later versions of such scripts begin at a share."""
    rate, highest = saved["optimizer"]["param_groups"][0]["lr"], _config()["learning_rate"]
    return int(saved["iter_num"]) >= _config()["warmup_iters"] or not math.isclose(
        rate, highest * _factor(int(saved["iter_num"]), ahead=False), rel_tol=1e-9
    )


def load(path: str, model: Any, optimizer: Any, scheduler: Any) -> int:
    """Weights, optimizer, and the schedule at its step: such a script computes the rate from the step, and saves none."""
    saved = _read(path)
    model.load_state_dict({k.removeprefix("_orig_mod."): v for k, v in saved["model"].items()})
    optimizer.load_state_dict(saved["optimizer"])
    step = int(saved["iter_num"])
    scheduler.last_epoch = step
    for group, base in zip(optimizer.param_groups, scheduler.base_lrs):  # noqa: B905  (Python 3.9)
        group["initial_lr"], group["lr"] = base, base * _factor(step)
    return step


def _tokens(split: str) -> Any:
    import numpy

    if split not in _kept:
        path = Path(os.environ.get("FORENSICS_DATA", ".")) / f"{split}.bin"
        if not path.is_file():
            raise FileNotFoundError(f"there is no {path}; FORENSICS_DATA names the folder with train.bin and val.bin")
        _kept[split] = numpy.memmap(path, dtype=numpy.uint16, mode="r")
    return _kept[split]


def _drawn(split: str) -> list[int]:
    """Where the samples of a batch begin, as the script draws them."""
    import torch

    config = _config()
    return torch.randint(len(_tokens(split)) - config["block_size"], (config["batch_size"],)).tolist()


def _launches() -> list[int]:
    """The first step of each launch, by the lines `iter 120: loss ...` and `step 100: train loss ...` of the log."""
    if "launches" not in _kept:
        found, last = [0], -1
        for path in sorted(p for kind in LOGS for p in RUN.glob(kind)):
            for line in path.read_text("utf-8", "replace").splitlines():
                told = re.match(r"(?:iter|step) (\d{1,12}): ", line)
                if told and (int(told[1]) < last or line.startswith(f"step {last}: ")):
                    found.append(int(told[1]))
                last = int(told[1]) if told else last
        _kept["launches"] = found
    return list(_kept["launches"])


def _steps_of(launch: int, step: int) -> list[list[int]]:
    """The draws of each step of a launch, as far as a step of it."""
    import torch

    config, known = _config(), _kept.setdefault(("draws", launch), {"state": _kept["state"], "steps": [], "ahead": []})
    together, every = int(config["gradient_accumulation_steps"]), int(config["eval_interval"])
    now = torch.get_rng_state()
    torch.set_rng_state(known["state"])
    known["ahead"] = known["ahead"] or _drawn("train")
    while len(known["steps"]) <= step - launch:
        if (launch + len(known["steps"])) % every == 0:
            for split in ("train", "val"):
                for _ in range(int(config["eval_iters"])):
                    _drawn(split)
        rows: list[int] = []
        for _ in range(together):
            rows += known["ahead"]
            known["ahead"] = _drawn("train")
        known["steps"].append(rows)
    known["state"] = torch.get_rng_state()
    torch.set_rng_state(now)
    return list(known["steps"])


def sample_ids(step: int) -> list[int]:
    launch = max((n for n in _launches() if n <= step), default=0)
    return _steps_of(launch, step)[step - launch]


def batch(step: int) -> Any:
    import numpy
    import torch

    data, size = _tokens("train"), int(_config()["block_size"])
    rows = [torch.from_numpy(data[i : i + size + 1].astype(numpy.int64)) for i in sample_ids(step)]
    return {"x": torch.stack([r[:-1] for r in rows]), "y": torch.stack([r[1:] for r in rows])}


def loss(model: Any, batch: Any) -> Any:
    return model(batch["x"], batch["y"])[1]


def __getattr__(name: str) -> Any:
    if name == "CLIP":
        return _config()["grad_clip"] or None
    if name == "PRECISION":
        on_cpu = str(_config().get("device", "cuda")).startswith("cpu")  # where such a script does not autocast
        return "fp32" if on_cpu else PRECISIONS.get(str(_config().get("dtype")), "fp32")
    if name == "MICRO_BATCH" and int(_config()["gradient_accumulation_steps"]) > 1:
        return int(_config()["batch_size"])
    raise AttributeError(name)
