"""For Keras."""

from __future__ import annotations

from typing import Any

import keras

from forensics.callbacks.recording import Recording


class KerasCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """``model.fit(..., callbacks=[KerasCallback(folder)])``. Steps count batches from 1, as Keras' TensorBoard callback does; the numbers of
    each epoch are recorded.

    To record batch ids call ``callback.saw(ids)`` where the batch is trained on.
    """

    def __init__(self, folder: str = ".", *, wait: float = 300.0) -> None:
        super().__init__()
        self.recording, self.done = Recording(folder, wait=wait), 0

    def saw(self, ids: Any) -> None:
        self.recording.saw(ids)

    def on_train_begin(self, logs: Any = None) -> None:
        self.done = 0
        self.recording.begin()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.done += 1
        self.recording.step(self.done)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.recording.log(self.done, epoch=epoch, **(logs or {}))

    def on_train_end(self, logs: Any = None) -> None:
        self.recording.end()
