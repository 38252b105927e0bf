"""For Lightning's Trainer, of the package `lightning` or the older `pytorch_lightning`, whichever the program imported."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from forensics.callbacks.recording import Recording

_older = "pytorch_lightning" in sys.modules and "lightning" not in sys.modules
_package = importlib.import_module("pytorch_lightning") if _older else importlib.import_module("lightning.pytorch")


class LightningCallback(_package.Callback):  # type: ignore[misc, name-defined]
    """``Trainer(..., callbacks=[LightningCallback()])``; ``folder`` is the logger's ``log_dir`` unless it is given.

    ``ids`` names the key of a batch that holds the ids of its samples, if they are to be recorded; a batch that is no mapping can be
    told with ``callback.saw(ids)`` in ``training_step``. Steps count from 0, as Lightning's loggers do.
    """

    def __init__(self, folder: str | None = None, *, ids: str | None = None, wait: float = 300.0) -> None:
        self.folder, self.ids, self.wait = folder, ids, wait
        self.recording: Recording | None = None
        self.done = 0  # optimizer steps

    def saw(self, ids: Any) -> None:
        if self.recording is not None:
            self.recording.saw(ids)

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self.recording = Recording(self.folder or trainer.log_dir or trainer.default_root_dir, wait=self.wait)
        self.recording.main, self.done = bool(trainer.is_global_zero), trainer.global_step
        self.recording.begin()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self.recording is None:
            return
        if self.ids is not None and hasattr(batch, "keys") and self.ids in batch:
            self.recording.saw(batch[self.ids])
        if trainer.global_step != self.done:  # else gradients were accumulated
            self.done = trainer.global_step
            self.recording.step(self.done - 1)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self.recording is not None:
            self.recording.end(exception)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        if self.recording is not None:
            self.recording.end()
