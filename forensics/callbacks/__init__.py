"""In the training itself: at its end, a crash or a signal the case and the page are written into the run's folder.

    with forensics.callbacks.record("runs/xyz") as run:
        for step, batch in enumerate(batches):
            ...
            run.step(step, ids=batch["ids"])  # if you want to: which samples the step had

    Trainer(..., callbacks=[forensics.callbacks.HFCallback()])         # transformers
    Trainer(..., callbacks=[forensics.callbacks.LightningCallback()])  # Lightning
    model.fit(..., callbacks=[forensics.callbacks.KerasCallback("runs/xyz")])

The analysis runs in a process of its own, so that nothing of it is loaded into the training. Nothing here raises into the training: what
fails becomes a line on standard error. A framework is imported where its class is asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

from forensics.callbacks.recording import Recording, record

__all__ = ["HFCallback", "KerasCallback", "LightningCallback", "Recording", "record"]

_MODULES = {"HFCallback": "hf_callback", "LightningCallback": "lightning_callback", "KerasCallback": "keras_callback"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
