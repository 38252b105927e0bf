"""The whole state of a training, taken from an adapter's objects and put back: weights, optimizer, schedule, scaler, random numbers, hidden state."""

from __future__ import annotations

import inspect
from typing import Any

from .states import copied, generators, set_generators
from .wrapped import joined_again, local

HOW = {"params", "foreach", "fused", "capturable", "differentiable"}  # of torch's optimizers: the same update, computed otherwise


def taken(a: Any) -> dict[str, Any]:
    """A copy of all that a step may change."""
    state = {
        "model": a.model.state_dict(),
        "optimizer": a.optimizer.state_dict(),
        "scheduler": a.scheduler.state_dict() if a.scheduler is not None else None,
        "scaler": a.scaler.state_dict(),
        "generators": generators(),
        "training": a.model.training,
        "attributes": attributes(a.model),
        "extra": a.module.extra_state() if a.has("extra_state") else None,
    }
    return copied(state)  # type: ignore[no-any-return]


def put_back(a: Any, state: dict[str, Any]) -> None:
    a.optimizer.zero_grad(set_to_none=True)
    other = False
    for name, t in [*a.model.named_parameters(), *a.model.named_buffers()]:
        kept = state["model"].get(name)
        if kept is not None and kept.dtype != t.dtype:
            t.data = t.data.to(kept.dtype)  # an experiment in another precision went before
            other = True
    if other:
        joined_again(a.model)
    a.model.load_state_dict(state["model"])
    a.optimizer.load_state_dict(copied(state["optimizer"]))  # it keeps the tensors that it is given
    if a.scheduler is not None:
        a.scheduler.load_state_dict(dict(copied(state["scheduler"])))
    if state["scaler"]:
        a.scaler.load_state_dict(state["scaler"])
    set_attributes(a.model, copied(state["attributes"]))
    if a.has("set_extra_state"):
        a.module.set_extra_state(copied(state["extra"]))
    set_generators(state["generators"])
    a.model.train(state["training"])


def attributes(model: Any) -> dict[str, dict[str, Any]]:
    """What modules keep as plain attributes, by module: tensors, numbers, text, None, containers of these.

    A hidden state that goes from step to step, a cache or a counter stands in no state_dict. Weights that an attribute names once more are
    left alone: they are restored where they live.
    """
    weights = {_storage(t) for t in [*model.parameters(), *model.buffers()]}
    return {
        name: {k: v for k, v in vars(module).items() if not k.startswith("_") and k != "training" and _plain(v, weights)}
        for name, module in model.named_modules()
    }


def set_attributes(model: Any, saved: dict[str, dict[str, Any]]) -> None:
    """Puts them back, lists and dicts in place; those that have come since are taken away."""
    now = attributes(model)
    for name, module in model.named_modules():
        held, kept = vars(module), saved[name]
        for k in now[name].keys() - kept.keys():
            del held[k]
        for k, v in kept.items():
            if type(v) is list and type(held.get(k)) is list:
                held[k][:] = v
            elif type(v) is dict and type(held.get(k)) is dict:
                held[k].clear()
                held[k].update(v)
            else:
                held[k] = v


def _plain(v: Any, weights: set[int]) -> bool:
    import torch

    if isinstance(v, torch.Tensor):
        return not (v.is_leaf and v.requires_grad) and v.layout is torch.strided and _storage(v) not in weights
    if type(v) in (list, tuple, dict):
        return all(_plain(x, weights) for x in (v.values() if isinstance(v, dict) else v))
    return v is None or isinstance(v, (bool, int, float, str))


def _storage(t: Any) -> int:
    return int(local(t).untyped_storage().data_ptr())


def settings(a: Any, groups: Any) -> list[dict[str, Any]]:
    """Of each group what the optimizer's constructor takes, without what a schedule sets, and what only says how it computes."""
    takes = set(inspect.signature(type(a.optimizer).__init__).parameters) - HOW
    if a.scheduler is not None:
        takes -= {"lr", *(("momentum", "betas") if getattr(a.scheduler, "cycle_momentum", False) else ())}
    plain = (bool, int, float, tuple, list, type(None))
    return [{k: v for k, v in g.items() if k in takes and isinstance(v, plain)} for g in groups]


def set_settings(a: Any, groups: Any) -> None:
    """The settings of a saved optimizer, group by group."""
    for group, kept in zip(a.optimizer.param_groups, settings(a, groups)):  # noqa: B905  (Python 3.9)
        group.update(kept)
