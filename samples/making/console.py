"""Console logs with the lines of known trainers; written here after their formats, not by these programs."""

from __future__ import annotations

import math
from collections.abc import Iterator

from making.clock import millis, stamp
from making.training import Config, Row


def megatron(rows: list[Row], config: Config) -> Iterator[str]:
    """Megatron-LM's training_log: a line an iteration; a loss that is not finite is left out, as it does."""
    yield "------------------------ arguments ------------------------"
    for key, value in sorted(config.items()):
        yield f"  {key} {'.' * (47 - len(key))} {value}"
    yield "-------------------- end of arguments ---------------------"
    skipped = 0
    for row in rows:
        loss = f" lm loss: {row['loss']:.6E} |" if math.isfinite(row["loss"]) else ""
        skipped = row.get("skipped", 0)
        yield (
            f" [{stamp(row['time'])}] iteration {row['step']:8d}/{config['max_steps']:8d} |"
            f" consumed samples: {row['step'] * config['batch_size']:12d} |"
            f" elapsed time per iteration (ms): {row['step_time'] * 1000:.1f} |"
            f" learning rate: {row['lr']:.6E} | global batch size: {config['batch_size']:5d} |{loss}"
            f" loss scale: {row.get('loss_scale', 1.0):.1f} | grad norm: {row['grad_norm']:.3f} |"
            f" number of skipped iterations: {skipped:3d} | number of nan iterations: {int(not loss):3d} |"
        )
        if "val_loss" in row:
            value = row["val_loss"]
            yield (f" validation loss at iteration {row['step']} | lm loss value: {value:.6E} | lm loss PPL: {math.exp(value):.6E} | ")


def deepspeed(rows: list[Row]) -> Iterator[str]:
    """DeepSpeed's engine: an OVERFLOW line for each skipped step, a summary of rate and skipped steps now and then."""
    skipped = 0
    for row in rows:
        when = millis(row["time"])
        if row["skipped"]:
            skipped += 1
            yield (
                f"[{when}] [INFO] [loss_scaler.py:190:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step."
                f" Attempted loss scale: {row['loss_scale']:g}, reducing to {row['loss_scale'] / 2:g}"
            )
        if row["step"] % 10 == 0:
            yield (
                f"[{when}] [INFO] [logging.py:96:log_dist] [Rank 0] step={row['step']}, skipped={skipped},"
                f" lr=[{row['lr']:.6g}], mom=[(0.9, 0.99)]"
            )
            yield (
                f"steps: {row['step']} loss: {row['loss']:.4f} iter time (s): {row['step_time']:.3f}"
                f" samples/sec: {row['samples_per_sec']:.3f}"
            )


def nanogpt(rows: list[Row], config: Config, log_every: int = 5) -> Iterator[str]:
    """nanoGPT: point samples, steps from 0, and the sparse estimate over both splits on lines of their own."""
    yield f"tokens per iteration will be: {rows[0]['tokens']:,}"
    for row in rows:
        step = row["step"] - 1
        if "val_loss" in row:
            yield f"step {step}: train loss {row['train_loss']:.4f}, val loss {row['val_loss']:.4f}"
        if step % log_every == 0:
            yield f"iter {step}: loss {row['loss']:.4f}, time {row['step_time'] * 1000:.2f}ms, mfu -100.00%"


def titan(rows: list[Row], total: str, log_every: int = 1, gib: float = 11.3) -> Iterator[str]:
    """torchtitan's console, colours included; the memory figure is emulated."""
    for row in rows:
        if row["step"] % log_every and row["step"] > 1:
            continue
        yield (
            f"[rank0]:[titan] {millis(row['time'])} - root - INFO - \x1b[31mstep: {row['step']:2}  "
            f"\x1b[32mloss: {row['loss']:7.4f}  \x1b[38;2;180;60;0mgrad_norm: {row['grad_norm']:7.4f}  "
            f"\x1b[36mmemory: {gib:5.2f}GiB({gib / 0.79:.2f}%)  \x1b[34mtps: {round(row['tokens_per_sec']):,}\x1b[39m"
        )
        if "val_loss" in row:
            yield (
                f"[rank0]:[titan] {millis(row['time'])} - root - INFO - validate step: {row['step']}  loss: {row['val_loss']:7.4f}{total}"
            )


def logging(row: Row, level: str, text: str) -> str:
    """A line of Python's logging module."""
    return f"{millis(row['time'])} {level:7} train: {text}"
