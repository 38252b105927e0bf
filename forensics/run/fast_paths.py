"""Fast paths of the devices that a config turns off: half precision, TF32, compiled graphs, fused attention and optimizers."""

from __future__ import annotations

from forensics.run import settings
from forensics.run.settings import Setting
from forensics.run.usual_rate import is_set
from parsers.tables import Run

_PATHS = (
    ("torch_compile compile use_compile compile_model", "", "torch.compile fuses kernels"),
    ("tf32 allow_tf32 use_tf32", "", "TF32 takes matrix products of fp32 to the tensor cores"),
    (
        "attn_implementation _attn_implementation attention_implementation attn_impl",
        "eager math vanilla",
        "fused attention writes no scores to memory",
    ),
    ("use_flash_attn flash_attn use_flash_attention flash_attention flash", "", "fused attention writes no scores to memory"),
    ("fused fused_adam fused_optimizer use_fused_adam", "", "a fused optimizer steps in one kernel"),
    ("cudnn_benchmark benchmark", "", "cuDNN looks for the fastest convolution"),
)


def off(run: Run) -> list[tuple[Setting, str]]:
    """(setting, what it would do) of those that config turns off, or of half precision where it asks for fp32."""
    found = []
    if settings.precision(run) == "fp32":
        found.append(
            (settings.settings(run, "precision")[-1], "bf16 takes matrix products to the tensor cores at twice the rate of TF32 and more")
        )
    for names, slow, words in _PATHS:
        told = settings.named(run, names)
        if told and (str(told[-1].value).lower() in slow.split() if slow else not is_set(told[-1])):
            found.append((told[-1], words))
    return found
