"""A saved optimizer state as this optimizer takes it: parameters under their numbers, sharded where ours are."""

from __future__ import annotations

from typing import Any

from .wrapped import like


def fitted(state: dict[str, Any], optimizer: Any, model: Any) -> dict[str, Any]:
    """Parameters may be named by number, by that number as text (torch.distributed.checkpoint), or by the model's names for them."""
    ours = [p for g in optimizer.param_groups for p in g["params"]]
    names = {id(p): n for n, p in model.named_parameters()}
    named = [names.get(id(p)) for p in ours]
    saved = [str(k) for g in state["param_groups"] for k in g["params"]]
    if all(k.isdigit() for k in saved):
        number = {k: i for i, k in enumerate(saved)}  # the n-th of the save is the n-th here, as torch has it
    else:
        number = {str(n): i for i, n in enumerate(named)}
    if len(saved) != len(ours) or not {str(k) for k in state["state"]} <= number.keys():
        return state  # another optimizer: torch says what is wrong
    values = {number[str(k)]: _values(v, ours[number[str(k)]]) for k, v in state["state"].items()}
    groups = []
    for g in state["param_groups"]:
        groups.append({**g, "params": sorted(number[str(k)] for k in g["params"])})
    return {**state, "state": values, "param_groups": groups}


def _values(values: Any, ours: Any) -> Any:
    return {k: like(v, ours) if hasattr(v, "shape") else v for k, v in values.items()} if isinstance(values, dict) else values
