"""What the worker can be told: open, start, run, losses, gradients, frames, leaks, ids, content, elements."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any, Optional

from . import checks, element_losses, layouts, probes, row_content, shares, states, whole_state
from . import leaks as leaking
from .adapter import Adapter, Wrong, moved, rows_of
from .changes import Changes
from .failures import describe  # noqa: F401 - the worker asks for these two
from .plain import number, plain
from .protected import protect  # noqa: F401
from .wrapped import bare, scalar, sharded


class Session:
    """The adapter of this process and the states it has kept."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.adapter: Any = None
        self.store: Any = None


def do(session: Session, command: dict[str, Any], step: Any) -> dict[str, Any]:
    """Runs one command; `step` is called with what each training step gave. ``beside``: what the adapter has imported by now
    from its own folder."""
    done: dict[str, Any] = COMMANDS[command.pop("op")](session, step, **command)  # type: ignore[operator]
    return done | {"beside": session.adapter.module.__beside__}


def chosen(device: str, cards: int) -> str:
    """The device to replay on: a GPU for each rank, else the CPU."""
    if device == "auto":
        device = "cuda" if cards >= shares.WORLD else "cpu"
    if device.startswith("cuda") and not cards:
        raise Wrong("no CUDA device was found; use --device cpu")
    if device == "cuda" and cards < shares.WORLD:
        raise Wrong(f"{shares.WORLD} processes need as many GPUs, and {cards} was found; use --device cpu")
    return device


def open_(
    session: Session,
    step: Any,
    adapter: str,
    device: str,
    threads: int,
    memory: int,
    order: Optional[dict[str, Any]] = None,  # noqa: UP045
) -> dict[str, Any]:
    torch = session.torch
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    if threads:
        torch.set_num_threads(threads)
    device = chosen(device, torch.cuda.device_count() if device != "cpu" and torch.cuda.is_available() else 0)
    if device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # an adapter that shards would take a GPU that it sees
    device = shares.join(device)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    a = session.adapter = Adapter(adapter, device)
    a.order = {int(s): ids for s, ids in (order or {}).items()}
    session.store = states.Store(memory // shares.WORLD)
    module = a.module
    own = [[int(s), str(p)] for s, p in module.checkpoints()] if a.has("checkpoints") else None
    name = torch.cuda.get_device_name(a.device) if a.device.type == "cuda" else "cpu"
    group = a.optimizer.param_groups[0]
    put(session, "built")
    return {
        "device": name,
        "torch": torch.__version__,
        "parameters": sum(p.numel() for p in a.model.parameters()),
        "precision": str(getattr(module, "PRECISION", None) or _dtype(a.model)),
        "clip": a.clip,
        "optimizer": type(a.optimizer).__name__,
        "settings": {k: v for k, v in group.items() if isinstance(v, (int, float, str)) and k != "params"}
        | {"betas": list(group.get("betas", []))},
        "adaptive": "eps" in group,
        "last_step": getattr(module, "LAST_STEP", None),
        "checkpoints": own,
        "own_step": a.has("train_step"),
        "dropout": any(isinstance(m, torch.nn.modules.dropout._DropoutNd) and m.p > 0 for m in a.model.modules()),
        "state_bytes": states.size(session.store.get("built")),
        "gpus": torch.cuda.device_count() if a.device.type == "cuda" and shares.WORLD == 1 else 0,
    }


def _dtype(model: Any) -> str:
    kinds = {str(p.dtype) for p in model.parameters()}
    return "fp16" if kinds == {"torch.float16"} else "bf16" if kinds == {"torch.bfloat16"} else "fp32"


def put(session: Session, name: str) -> None:
    session.store.put(name, whole_state.taken(session.adapter))


def restore(session: Session, name: str) -> None:
    whole_state.put_back(session.adapter, session.store.get(name))


def start(session: Session, step: Any, path: str | None, name: str) -> dict[str, Any]:
    """The state of a checkpoint, or as built, under a name."""
    a = session.adapter
    restore(session, "built")
    if path is None:
        put(session, name)
        return {"settings": _settings(session), "step": 0, "count": 0, "parts": ["as built"], "left": []}
    if a.has("load"):
        loaded = layouts.Loaded(a.module.load(path, a.model, a.optimizer, a.scheduler), ["by the adapter's load()"], [])
    else:
        loaded = layouts.load_checkpoint(path, bare(a.model), a.optimizer, a.scheduler, a.scaler)
    count = states.count_of(a.optimizer, a.scheduler)
    put(session, name)
    step = None if loaded.step is None else int(loaded.step)
    return {"settings": _settings(session), "step": step, "count": count, "parts": loaded.parts, "left": loaded.left}


def _settings(session: Session) -> Any:
    return plain(whole_state.settings(session.adapter, session.adapter.optimizer.param_groups))


@dataclass(frozen=True)
class Wanted:
    """What a run does besides its steps.

    `keep`: position -> name of the state before it. `reset`: the position before which the optimizer's state is emptied;
    `moments`: [position, name of the state whose optimizer moments are put in before it]. `settings`: the same for its settings (weight
    decay, betas ...; the rate where no schedule sets it). `parts`: into how many parts each batch is
    cut, whose losses are told beside its own.
    """

    keep: Optional[dict[str, str]] = None  # noqa: UP045 (Python 3.9)
    changes: Optional[dict[str, Any]] = None  # noqa: UP045
    reset: Optional[int] = None  # noqa: UP045
    moments: Optional[list[Any]] = None  # noqa: UP045
    settings: Optional[list[Any]] = None  # noqa: UP045
    parts: Optional[list[int]] = None  # noqa: UP045


def run(session: Session, step: Any, state: str, plan: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
    """Training steps from a state. `plan`: {"batch": label, "rows": which}; `options` are those of ``Wanted``."""
    a, want = session.adapter, Wanted(**options)
    keep, changes = want.keep or {}, want.changes or {}
    restore(session, state)
    change = Changes(a, changes)
    begin, cpu = time.perf_counter(), time.process_time()
    with change.active():
        for i, item in enumerate(plan):
            if str(i) in keep:
                put(session, keep[str(i)])
            if want.reset == i:
                a.optimizer.state.clear()
            if want.settings and want.settings[0] == i:
                whole_state.set_settings(a, session.store.get(want.settings[1])["optimizer"]["param_groups"])
            if want.moments and want.moments[0] == i:
                saved = states.copied(session.store.get(want.moments[1])["optimizer"]["state"])
                a.optimizer.load_state_dict({"state": saved, "param_groups": a.optimizer.state_dict()["param_groups"]})
            batch = a.part(item["batch"], item.get("rows"))
            if changes.get("precision") == "fp64":
                batch = moved(batch, a.device, session.torch.float64)
            change.position, change.layers = i, None
            lr = float(a.optimizer.param_groups[0]["lr"])
            parts = checks.part_losses(a, batch, want.parts) if want.parts else None
            loss, norm = _on_device(a, a.step, batch)
            told = {"i": i, "loss": number(loss), "norm": None if norm is None else number(norm), "lr": lr}
            if change.layers is not None:
                told["layers"] = plain(change.layers)
            if parts is not None:
                told["parts"] = plain(parts)
            step(told)
    if str(len(plan)) in keep:
        put(session, keep[str(len(plan))])
    return {"seconds": time.perf_counter() - begin, "cpu": time.process_time() - cpu}


def _on_device(a: Any, do: Any, batch: Any) -> Any:
    """`do` with a batch; where the adapter makes tensors on the wrong device, once more with the device as the default."""
    try:
        return do(batch)
    except RuntimeError as e:
        if a.ambient or a.device.type == "cpu" or "device" not in str(e):
            raise
        a.ambient = True
        return do(batch)


def losses(
    session: Session, step: Any, state: str, batches: list[int], rows: bool = False, evaluate: bool = False, norm: bool = False
) -> dict[str, Any]:
    """Losses without a step: one a batch, or with `rows` one a sample of each batch; with `evaluate` without dropout. `norm`: of all weights."""
    restore(session, state)
    a = session.adapter
    a.model.train(a.model.training and not evaluate)

    def look(batch: Any) -> Any:
        return probes.sample_losses(a, batch) if rows else float(a.loss(batch))

    with session.torch.no_grad():
        found = {"losses": [plain(_on_device(a, look, a.batch(b))) for b in batches]}
        total = sum(scalar(p.double().pow(2).sum()) for p in a.model.parameters()) ** 0.5 if norm else 0.0
    return found | ({"norm": number(total)} if norm else {})


def gradients(session: Session, step: Any, state: str, batch: int) -> dict[str, Any]:
    restore(session, state)
    if sharded(session.adapter.model):
        raise Wrong("gradients of single samples are not taken of sharded weights")
    norms, how = probes.gradient_norms(session.adapter, session.adapter.batch(batch))
    return {"norms": plain(norms), "how": how}


def frames(session: Session, step: Any, state: str, batch: int) -> dict[str, Any]:
    restore(session, state)
    return plain(probes.frames(session.adapter, session.adapter.part(batch)))  # type: ignore[no-any-return]


def leaks(session: Session, step: Any, state: str, batch: int) -> dict[str, Any]:
    restore(session, state)
    if sharded(session.adapter.model):
        return {"why": "the weights are sharded: one rank alone cannot look at its outputs"}
    return plain(leaking.leaks(session.adapter, session.adapter.batch(batch)))  # type: ignore[no-any-return]


def pure(session: Session, step: Any, batches: list[int]) -> dict[str, Any]:
    return {"differs": checks.impure(session.adapter, batches)}


def ids(session: Session, step: Any, batches: list[int]) -> dict[str, Any]:
    a = session.adapter
    return {"ids": [a.ids(b) for b in batches], "rows": [rows_of(a.batch(b)) for b in batches]}


COMMANDS = {
    "open": open_, "start": start, "run": run, "losses": losses, "gradients": gradients, "frames": frames, "leaks": leaks,
    "ids": ids, "pure": pure, "content": row_content.content, "elements": element_losses.elements,
}  # fmt: skip
