"""What weights, gradients and optimizer state need before any batch comes, from the number of parameters."""

from __future__ import annotations

from forensics.run import peak_flops, settings, usual_rate
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

# paper: ZeRO (arXiv 1910.02054, section 3.1): Adam in mixed precision keeps 2 + 2 bytes of weight and gradient and 12 of state; in fp32 4 + 4 + 8
BYTES = 16
MOST = 0.5  # of the device: what is left has to hold activations, logits and buffers
# paper: 8-bit optimizers (arXiv 2110.02861): both moments in a byte each, for 4
SAVED = 6
_SHARED = lazy_re(
    r"(?i)(^|[./_])(zero(_optimization|_stage)?|fsdp\w*|shard\w*|(tensor|pipeline)_(model_)?parallel\w*|offload\w*|deepspeed)([./_]|$)"
)


def too_large(run: Run, capacity: float | None) -> tuple[str, tuple[str, ...]] | None:
    """(why no batch fits, what to do), where Adam's state of the whole model takes half of the device or more; None where that is not
    known: another optimizer, adapters, state that several devices share."""
    n = peak_flops.parameters(run)
    shared = any(_SHARED.search(s.key) and usual_rate.is_set(s) for s in settings.every(run))
    if n is None or not capacity or shared or usual_rate.family(run) != "adam" or usual_rate.tuned_by_adapters(run):
        return None
    need = BYTES * n
    if need < MOST * capacity:
        return None
    why = (
        f"Weights, gradients and Adam's state of {n:.3g} parameters take {need / 2**30:.3g} GiB ({BYTES} bytes each) of {capacity / 2**30:.3g} GiB, "
        "before any batch."
    )
    do = (
        f"Shard the optimizer's state over the devices (ZeRO, FSDP): on 8 of them {(BYTES - 12 + 12 / 8) * n / 2**30:.3g} GiB are left on each.",
        f"Keep Adam's moments in 8 bits ({SAVED * n / 2**30:.3g} GiB less), or offload them to the host.",
    )
    return why, do
