"""Lightning run folders: the checkpoints (`*.ckpt`), and the file that FORENSICS_MODULE names, with the module and its data.

The file defines one LightningModule, and one LightningDataModule or a `train_dataloader` in the module. What their constructors take is read
from the checkpoint. Settings of the Trainer (clipping, accumulation, precision) and the seed are in no checkpoint: they are read from
the one call of `Trainer(...)` and of `seed_everything(...)` in that file, or the hyper-parameter `seed`. The order of a shuffling
loader is drawn again from the seed, epoch after epoch; where that order cannot be known, the batch is refused in a sentence.
"""

from __future__ import annotations

import ast
import inspect
import os
import random
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RUN = Path(os.environ.get("FORENSICS_RUN", "."))
WHAT = "your LightningModule and its data"
PRECISIONS = {"32": "fp32", "32-true": "fp32", "bf16": "bf16", "bf16-mixed": "bf16", "16": "fp16", "16-mixed": "fp16"}
HOOKS = ("optimizer_step", "optimizer_zero_grad", "configure_gradient_clipping", "on_train_epoch_start", "on_train_batch_start")
NAMED: Any = globals().get("named_file")  # put here by the worker
_kept: dict[str, Any] = {}


class _ByEpoch:
    """A schedule that moves at the end of an epoch, told of every optimizer step."""

    def __init__(self, inner: Any, optimizer: Any, every: int) -> None:
        self.inner, self.optimizer, self.every, self.done = inner, optimizer, every, 0

    def step(self) -> None:
        self.done += 1
        if self.done % self.every == 0:
            self.inner.step()

    def state_dict(self) -> dict[str, Any]:
        return {"inner": self.inner.state_dict(), "done": self.done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Its own state, or that of the schedule in a checkpoint, where the optimizer knows its steps."""
        self.inner.load_state_dict(state.get("inner", state))
        counts = [int(s["step"]) for s in self.optimizer.state.values() if "step" in s]
        self.done = state["done"] if "inner" in state else max(counts, default=self.inner.last_epoch * self.every)


def _lightning(name: str) -> Any:
    """A class of Lightning, of the package that the user's file imports."""
    for package in ("lightning.pytorch", "pytorch_lightning"):
        if package in sys.modules:
            return getattr(sys.modules[package], name)
    raise ValueError("the file that FORENSICS_MODULE names imports neither lightning nor pytorch_lightning")


def _file() -> Any:
    warnings.filterwarnings("ignore", message=".*self.log.*")
    return NAMED.load(WHAT)


def _only(kind: str) -> Any:
    """The one class of that kind that the file defines; None where there is none."""
    file, base = _file(), _lightning(kind)
    found = [c for c in vars(file).values() if isinstance(c, type) and issubclass(c, base) and c.__module__ == file.__name__]
    if len(found) > 1:
        raise ValueError(f"the file defines {len(found)} classes of {kind}: {', '.join(c.__name__ for c in found)}; name a file with one")
    return found[0] if found else None


def checkpoints() -> list[tuple[int, str]]:
    if "checkpoints" not in _kept:
        paths = sorted(RUN.rglob("*.ckpt"))
        if not paths:
            raise FileNotFoundError(f"no .ckpt in {RUN}")
        _kept["checkpoints"] = sorted((_step(p), str(p)) for p in paths)
    return list(_kept["checkpoints"])


def _step(path: Path) -> int:
    named = re.search(r"step=(\d+)", path.name)
    return int(named[1]) if named else int(_read(str(path))["global_step"])


def _read(path: str) -> Any:
    import torch

    package = sys.modules.get("lightning.fabric.utilities.data") or sys.modules.get("lightning_fabric.utilities.data")
    with torch.serialization.safe_globals([package.AttributeDict] if package else []):
        return torch.load(path, map_location="cpu", weights_only=True)


def _made(kind: Any, key: str) -> Any:
    """An object of the class, with the hyper-parameters of the first checkpoint that its constructor takes."""
    if "saved" not in _kept:
        _kept["saved"] = _read(checkpoints()[0][1])
    saved = dict(_kept["saved"].get(key) or {})
    takes = inspect.signature(kind.__init__).parameters.values()
    lacking = [
        p.name for p in takes if p.name != "self" and p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in saved
    ]
    if lacking:
        raise ValueError(f"the checkpoint does not say {', '.join(lacking)} of {kind.__name__}: save_hyperparameters() was not called")
    return kind(**{k: v for k, v in saved.items() if k in {p.name for p in takes}})


def _setting(name: str, default: Any) -> Any:
    """An argument of the file's Trainer(...)."""
    _file()
    found = NAMED.arguments("Trainer").get(name, default)
    if isinstance(found, ast.AST):
        raise ValueError(f"the file gives the Trainer's {name} by an expression; write the number, or a constant of the module")
    return found


def _seed() -> Any:
    _file()
    found = (told := NAMED.arguments("seed_everything")).get(0, told.get("seed"))
    if found is None or isinstance(found, ast.AST):
        _kept.setdefault("saved", _read(checkpoints()[0][1]))
        found = (_kept["saved"].get("hyper_parameters") or {}).get("seed")
    return found


def build() -> Any:
    """Made in the order in which a script makes them: seed, module, data, the loaders, the optimizer."""
    import torch

    module = _only("LightningModule")
    if module is None:
        raise ValueError("the file that FORENSICS_MODULE names defines no LightningModule")
    seed = _seed()
    if seed is not None:
        random.seed(seed)
        torch.manual_seed(seed)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(seed)
    model = _made(module, "hyper_parameters")
    changed = [h for h in HOOKS if getattr(module, h) is not getattr(_lightning("LightningModule"), h)]
    if changed or not model.automatic_optimization:
        raise ValueError(f"{module.__name__} steps in a way of its own ({', '.join(changed) or 'manual optimization'}): write an adapter")
    data = _only("LightningDataModule")
    source = _made(data, "datamodule_hyper_parameters") if data else model
    source.setup("fit")
    loader = source.train_dataloader()
    if not isinstance(loader, torch.utils.data.DataLoader) or loader.batch_sampler is None:
        raise ValueError("train_dataloader() gives no DataLoader with batches of known samples: write an adapter")
    checks = model.__class__.validation_step is not _lightning("LightningModule").validation_step
    evaluated = source.val_dataloader() if checks else []
    _kept.update(loader=loader, evaluated=evaluated if isinstance(evaluated, list) else [evaluated], order=_epochs(model, loader))
    _kept.update(epochs=[], state=torch.get_rng_state())
    model.train()
    return (model, *_optimizer(model))


def _optimizer(model: Any) -> tuple[Any, ...]:
    """What configure_optimizers() gives, in any of its forms."""
    found = model.configure_optimizers()
    if isinstance(found, dict):
        found = ([found["optimizer"]], [found["lr_scheduler"]] if "lr_scheduler" in found else [])
    elif not (isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], list)):
        found = (list(found) if isinstance(found, (list, tuple)) else [found], [])
    if len(found[0]) != 1 or len(found[1]) > 1:
        raise ValueError("configure_optimizers() gives several optimizers or schedules: write an adapter")
    if not found[1]:
        return (found[0][0],)
    plan = found[1][0] if isinstance(found[1][0], dict) else {"scheduler": found[1][0]}
    if type(plan["scheduler"]).__name__ == "ReduceLROnPlateau":
        raise ValueError("the schedule follows an evaluation (ReduceLROnPlateau), which is not replayed: write an adapter")
    every = int(plan.get("frequency", 1)) * (1 if plan.get("interval", "epoch") == "step" else _per_epoch())
    return found[0][0], plan["scheduler"] if every == 1 else _ByEpoch(plan["scheduler"], found[0][0], every)


def _per_epoch() -> int:
    return int(-(-len(_kept["loader"].batch_sampler) // int(_setting("accumulate_grad_batches", 1))))


def _indices(loader: Any) -> list[list[int]]:
    """The samples of an epoch's batches; it draws what an iterator over that loader draws."""
    import torch

    rows: Any = range(len(loader.dataset))
    plain: Any = torch.utils.data.DataLoader(rows, batch_sampler=loader.batch_sampler, collate_fn=list,
                                        generator=loader.generator)  # fmt: skip
    return list(plain)


def _epochs(model: Any, loader: Any) -> Iterator[list[list[int]]]:
    """The order of each epoch, one after the other."""
    import torch

    sampler = loader.batch_sampler.sampler
    drawn = isinstance(sampler, torch.utils.data.RandomSampler) and sampler.generator is None and loader.generator is None
    if drawn and _seed() is None:
        raise ValueError(
            "the loader shuffles, and neither seed_everything(N) in the file nor the checkpoint says the seed: its order is not known"
        )
    dropout = any(isinstance(m, torch.nn.modules.dropout._DropoutNd) and m.p > 0 for m in model.modules())
    shared = drawn and dropout and _setting("accelerator", "auto") not in ("gpu", "cuda")
    for epoch in range(1 << 30):
        if epoch and shared:
            raise ValueError("dropout on the CPU draws from the generator that shuffles: the order after the first epoch is not known")
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(epoch)
        yield _indices(loader)
        if _kept["evaluated"] and _setting("limit_val_batches", 1.0) and (epoch + 1) % int(_setting("check_val_every_n_epoch", 1)) == 0:
            for one in _kept["evaluated"]:
                iter(torch.utils.data.DataLoader(one.dataset, generator=one.generator))  # an evaluation draws the seed of its workers


def sample_ids(step: int) -> list[int]:
    import torch

    epoch, i = divmod(step, _per_epoch())
    now = torch.get_rng_state()
    torch.set_rng_state(_kept["state"])
    while len(_kept["epochs"]) <= epoch:
        _kept["epochs"].append(next(_kept["order"]))
    _kept["state"] = torch.get_rng_state()
    torch.set_rng_state(now)
    together = int(_setting("accumulate_grad_batches", 1))
    return [n for b in _kept["epochs"][epoch][i * together : (i + 1) * together] for n in b]


def batch(step: int) -> Any:
    loader = _kept["loader"]
    return loader.collate_fn([loader.dataset[n] for n in sample_ids(step)])


def loss(model: Any, batch: Any) -> Any:
    takes = len(inspect.signature(model.training_step).parameters)
    found = model.training_step(*(batch, 0)[:takes])
    return found["loss"] if isinstance(found, dict) else found


def __getattr__(name: str) -> Any:
    if name == "CLIP":
        if _setting("gradient_clip_algorithm", "norm") != "norm":
            raise ValueError("the Trainer clips by value, which is not replayed: write an adapter")
        return _setting("gradient_clip_val", None) or None
    if name == "PRECISION":
        told = str(_setting("precision", "32-true"))
        if told not in PRECISIONS:
            raise ValueError(f"the Trainer's precision {told} is not replayed: write an adapter")
        return PRECISIONS[told]
    if name == "MICRO_BATCH" and int(_setting("accumulate_grad_batches", 1)) > 1:
        return _kept["loader"].batch_sampler.batch_size
    raise AttributeError(name)
