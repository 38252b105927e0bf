"""The whole state of a training, taken from an adapter's objects and put back: weights, optimizer, schedule, scaler, random numbers, hidden state."""

from __future__ import annotations

from typing import Any

from .states import copied, generators, set_generators
from .tensors_in import flat


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
    }
    return copied(state)  # type: ignore[no-any-return]


def put_back(a: Any, state: dict[str, Any]) -> None:
    a.optimizer.zero_grad(set_to_none=True)
    for name, t in [*a.model.named_parameters(), *a.model.named_buffers()]:
        kept = state["model"].get(name)
        if kept is not None and kept.dtype != t.dtype:
            t.data = t.data.to(kept.dtype)  # an experiment in another precision went before
    a.model.load_state_dict(state["model"])
    a.optimizer.load_state_dict(copied(state["optimizer"]))  # it keeps the tensors that it is given
    if a.scheduler is not None:
        a.scheduler.load_state_dict(dict(copied(state["scheduler"])))
    if state["scaler"]:
        a.scaler.load_state_dict(state["scaler"])
    set_attributes(a.model, copied(state["attributes"]))
    set_generators(state["generators"])
    a.model.train(state["training"])


def attributes(model: Any) -> dict[str, dict[str, Any]]:
    """Tensors that modules keep as plain attributes, by module: a hidden state that goes from step to step stands in no state_dict."""
    found = {}
    for name, module in model.named_modules():
        kept = {k: v for k, v in vars(module).items() if not k.startswith("_") and flat(v)}
        if kept:
            found[name] = kept
    return found


def set_attributes(model: Any, saved: dict[str, dict[str, Any]]) -> None:
    """Puts them back; those that a module did not have when they were saved are None, as before its first step."""
    for name, module in model.named_modules():
        kept = saved.get(name, {})
        for k in [k for k, v in vars(module).items() if not k.startswith("_") and flat(v) and k not in kept]:
            setattr(module, k, None)
        for k, v in kept.items():
            setattr(module, k, v)


def settings_of(optimizer: Any) -> list[dict[str, Any]]:
    """The numbers and switches of each group of a saved optimizer."""
    plain = (bool, int, float, tuple, list, type(None))
    return [{k: v for k, v in g.items() if k != "params" and isinstance(v, plain)} for g in optimizer["param_groups"]]


def set_settings(optimizer: Any, saved: Any, rates: bool) -> None:
    """The settings of a saved optimizer, group by group; the rate only with `rates`: else a schedule sets it."""
    for group, kept in zip(optimizer.param_groups, settings_of(saved)):  # noqa: B905  (Python 3.9)
        group.update({k: v for k, v in kept.items() if k in group and (rates or k not in ("lr", "initial_lr"))})
