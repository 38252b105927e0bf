"""For transformers' Trainer."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from forensics.callbacks.recording import Recording


class HFCallback(TrainerCallback):
    """``Trainer(..., callbacks=[HFCallback()])``; ``folder`` is the Trainer's ``output_dir`` unless it is given.

    To record batch ids call ``callback.saw(inputs["ids"])`` in ``compute_loss``, where each micro-batch passes once; a collator
    runs ahead of the step.
    """

    def __init__(self, folder: str | None = None, *, wait: float = 300.0) -> None:
        self.folder, self.wait = folder, wait
        self.recording: Recording | None = None

    def saw(self, ids: Any) -> None:
        if self.recording is not None:
            self.recording.saw(ids)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.recording = Recording(self.folder or args.output_dir, wait=self.wait)
        self.recording.main = bool(state.is_world_process_zero)
        self.recording.begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.recording is not None:
            self.recording.step(state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        if self.recording is not None:
            self.recording.log(state.global_step, **(logs or {}))

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.recording is not None:
            self.recording.end()
