"""What a tensor is to the training: weight, exp_avg, exp_avg_sq, master, ema, buffer or other, by its name and its file's kind.

Names: torch.optim, apex and Megatron (``fp32_from_fp16_params``), DeepSpeed (``single_partition_of_fp32_groups``),
bitsandbytes (``state1``), Keras (``optimizer/.../momentum``), optax (``mu``, ``nu``; pickled, their places in the state).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from parsers.checkpoints.contents import Tensor
from parsers.lazy_regex import lazy_re

_FIRST = {"exp_avg", "exp_avgs", "state1", "mu", "_momentums"}
_SECOND = {"exp_avg_sq", "exp_avg_sqs", "max_exp_avg_sq", "exp_avg_sq_row", "exp_avg_sq_col", "state2", "nu", "_velocities", "square_avg"}
_MASTER = lazy_re(r"(^|\.)(single_partition_of_fp32_groups|fp32_flat_groups|fp32_from_fp16_params|fp32_from_float16_params|master_weights?|master_params?|fp32_param|"
                     r"shard_fp32_from_float16_groups|param_fp32)(\.|$)")  # fmt: skip
_EMA = lazy_re(r"(?i)(^|[._])(ema|model_ema|ema_model|ema_state_dict|shadow_params|averaged_model|state_dict_ema)([._]|$)")
_APART = lazy_re(r"(?i)(^|\.)(optimi[sz]er\w*|optim\w*|opt|opt_state|tx_state|_optimizers|lr_schedulers?|schedulers?|opt_param_scheduler|scaler|rng\w*|random\w*|callbacks|loops|"
                    r"sampler\w*|cuda_rng\w*|python|numpy|metrics|dataloader\w*|amp|grad_scaler|hyper_parameters|args|datamodule)(\.|$)")  # fmt: skip
_BUFFER = lazy_re(r"(^|[._])(running_mean|running_var|num_batches_tracked|inv_freq|masked_bias|position_ids|token_type_ids|relative_position_index|"
                     r"original_inv_freq|cos_cached|sin_cached|attn_mask|causal_mask|tril|mask)$")  # fmt: skip
_BY_PLACE = lazy_re(r"(?P<state>(?:[^:]{1,200}:)?(?:\w{1,40}\.){0,3}\w{1,40}(?:\.\d{1,4}){1,8})\.(?P<place>[12])\.(?P<of>\D.*)")
_OPTAX = lazy_re(r"opt(?:im(?:izer)?)?(?:_state)?|tx_state")
# torch.optim's layout, whatever a program calls the whole (``o.state.9.step``): it shows by the keys that its optimizers use
_OF_TORCH = lazy_re(r"(?P<state>(?:[^:]{1,200}:)?(?:\w{1,40}\.){0,4}state)\.\d{1,9}\.(?P<key>\w{1,40})")
_KEYS = _FIRST | _SECOND | {"momentum_buffer", "acc_delta", "grad_avg", "exp_inf"}
_FLOATS = ("float", "bfloat", "complex", "F4", "F6")


def role(name: str, dtype: str, kind: str) -> str:
    """`kind` is the file's, as parsers.formats.checkpoint_files names it."""
    parts = [p for p in re.split(r"[./]", name) if p]
    last = parts[-1] if parts else ""
    if _FIRST & set(parts[-2:]):
        return "exp_avg"
    if _SECOND & set(parts[-2:]):
        return "exp_avg_sq"
    if _MASTER.search(name) or (kind == "optimizer" and last == "param"):
        return "master"
    if kind in ("optimizer", "rng", "scheduler", "scaler", "arguments") or _APART.search(name):
        return "other"
    if _EMA.search(name):
        return "ema"
    if _BUFFER.search(name) or not dtype.startswith(_FLOATS):
        return "buffer"
    return "weight"


def _holds_moments(state: str, moments: Iterable[str], tensors: Sequence[Tensor]) -> bool:
    """Whether a place holds an optimizer's state: by its name, or since the weights stand elsewhere under the same names."""
    if _OPTAX.search(state):
        return True
    top = state.partition(".")[0]
    weights = {t.name.partition(".")[::2] for t in tensors}
    return all("." in of for of in moments) and any(
        all((other, of) in weights for of in moments) for other in {w[0] for w in weights} - {top}
    )


def set_roles(tensors: Iterable[Tensor], kind: str) -> None:
    tensors = [*tensors]
    places: dict[str, dict[str, dict[str, Tensor]]] = {}
    for t in tensors:
        t.role = role(t.name, t.dtype, kind)
        if m := _BY_PLACE.match(t.name):
            places.setdefault(m["state"], {}).setdefault(m["place"], {})[m["of"]] = t
    of_torch = [(t, m) for t in tensors if (m := _OF_TORCH.fullmatch(t.name))]
    states = {m["state"] for _, m in of_torch if m["key"] in _KEYS}
    for t, m in of_torch:
        if m["state"] in states and t.role == "weight":
            t.role = "other"
    for state, found in places.items():  # ScaleByAdamState(count, mu, nu)
        if "1" in found and found["1"].keys() == found.get("2", {}).keys() and _holds_moments(state, found["1"], tensors):
            for place, told in (("1", "exp_avg"), ("2", "exp_avg_sq")):
                for t in found[place].values():
                    t.role = told
