"""DeepSpeed's axis of samples.

From deepspeed/runtime/engine.py: ``Train/Samples/...`` is logged over ``global_samples``, the samples done with the step included. A
label is what had been consumed after the step, and the distance of two labels is the global batch (times the logging interval).
"""

from __future__ import annotations


def taken(labels: list[int], label: int) -> tuple[int, int] | None:
    """[first, last) place in the order of samples of the step that is logged at `label`; `labels` are the axis as logged.

    The global batch is the smallest distance of two labels.
    """
    size = min((b - a for a, b in zip(labels, labels[1:], strict=False) if b > a), default=None)
    return None if size is None or label < size or label % size else (label - size, label)
