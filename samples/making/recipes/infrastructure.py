"""Sound training on a machine that is not: memory, speed, silence; and a logger that tells of a spike that was none."""

from __future__ import annotations

import math
from pathlib import Path

from making import console, files, tensorboard
from making.clock import Clock, millis
from making.data import language
from making.expect import Expect
from making.models import Recurrent, Transformer
from making.training import Job, Row, settings


def out_of_memory_tensorboard(out: Path) -> Expect:
    """Memory grows by 58 MB a step until the run ends at step 389 with CUDA out of memory; the last record of the event
    file is torn. TensorBoard and the console with its traceback."""
    config = settings(max_steps=1000, lr=4e-3, seed=81, eval_every=100)
    job = Job(language(61, samples=8000), lambda: Recurrent(width=48), config, Clock("2026-05-04T08:00:00", 0.3))
    started = job.clock.now
    job.extra = lambda step: {"memory": 16.2 + 0.058 * step + 0.02 * (step % 3)}
    rows = list(job.run(last=389))
    files.config_yaml(out, config)
    tensorboard.event_file(out / "tb", rows, started, files.NAMES | {"memory": "system/gpu_memory_allocated_gib"}, torn=17)
    trace = [
        "Traceback (most recent call last):",
        '  File "train.py", line 142, in <module>',
        "    main()",
        '  File "train.py", line 97, in main',
        "    loss.backward()",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity"
        " of 39.39 GiB of which 203.31 MiB is free. Including non-PyTorch memory, this process has 39.18 GiB memory in"
        " use.",
    ]
    log = [console.logging(row, "INFO", f"step {row['step']}: loss {row['loss']:.4f}") for row in rows if row["step"] % 50 == 0]
    files.lines(out / "train.log", [*log, *trace])
    return Expect(
        top="out_of_memory",
        findings=["memory"],
        clear=["loss_spike", "nonfinite", "restart", "divergence"],
        status="crashed",
        first_bad_step=389,
        emulated="memory figures, the error's text and the clock",
    )


def throughput_megatron(out: Path) -> Expect:
    """From step 251 on each step takes three times as long; loss and gradients are those of a sound run. Console in
    Megatron's lines."""
    config = settings(max_steps=500, lr=4e-3, seed=82, eval_every=100)
    job = Job(language(62), Transformer, config, Clock("2026-05-05T08:00:00", 0.42))
    job.slower = lambda step: 3.1 if step > 250 else 1.0
    rows = list(job.run())
    files.lines(out / "train.log", console.megatron(rows, config))
    return Expect(
        top="throughput_collapse",
        findings=["throughput"],
        clear=["loss_spike", "nonfinite", "restart", "divergence"],
        first_bad_step=251,
        emulated="step times, Megatron's console lines and the clock",
    )


def hang_titan(out: Path) -> Expect:
    """After step 318 nothing is logged any more while the job lives; the scheduler ends it four hours later. Console in
    torchtitan's lines."""
    config = settings(max_steps=900, lr=4e-3, seed=83, eval_every=0)
    job = Job(language(63), Transformer, config, Clock("2026-05-06T08:00:00", 0.38))
    rows = list(job.run(last=318))
    files.config_yaml(out, config, "job_config.yaml")
    end = millis(rows[-1]["time"] + 4 * 3600)
    log = [
        *console.titan(rows, "", 2),
        f"slurmstepd: error: *** JOB 90417 ON trainer-0 CANCELLED AT {end[:10]}T{end[11:19]} DUE TO TIME LIMIT ***",
    ]
    files.lines(out / "rank0.log", log)
    return Expect(
        top="hang",
        findings=["stall"],
        clear=["loss_spike", "nonfinite", "restart", "divergence"],
        status="hung",
        first_bad_step=318,
        emulated="the silence, the scheduler's text, torchtitan's console lines and the clock",
    )


def _trainer_losses(losses: list[float], micro: int, interval: int, nan_steps: set[int]) -> list[float]:
    """Loss as Hugging Face's Trainer logs it with its NaN filter on: a micro-batch whose loss is not finite adds the
    sum since the last log over (1 + steps finished since then) in place of itself."""
    logged, total = [], 0.0
    for index, loss in enumerate(losses):
        finished = index % interval
        for _ in range(micro):
            total += total / (1 + finished) if index + 1 in nan_steps else loss / micro
        if finished == interval - 1:
            logged.append(total / interval)
            total = 0.0
    return logged


def phantom_spike_trainer(out: Path) -> Expect:
    """At step 480 the loss of all eight micro-batches was NaN and the step was skipped; training is sound before and
    after. The Trainer's NaN filter makes of it a spike to nearly twice the loss, in the row whose gradient norm is
    NaN."""
    config = settings(
        max_steps=800,
        lr=4e-3,
        seed=84,
        schedule="linear",
        min_lr=0.0,
        eval_every=200,
        gradient_accumulation_steps=8,
        logging_nan_inf_filter=True,
    )
    job = Job(language(64), Recurrent, config, Clock("2026-05-07T08:00:00", 0.21))
    rows: list[Row] = []
    for step in range(1, config["max_steps"] + 1):
        if step != 480:
            rows.append(job.step(step))
            continue
        took = job.clock.tick()  # forward and backward ran, the optimizer did not
        rows.append(
            {"step": step, "loss": rows[-1]["loss"], "lr": job.lr(step), "grad_norm": math.nan, "step_time": took, "time": job.clock.now}
        )
    losses = _trainer_losses([row["loss"] for row in rows], 8, 10, {480})
    files.config_json(out, config, "training_args.json")
    files.trainer_state(out, rows, config, epoch=len(job.task) // 16, losses=losses)
    return Expect(
        top="logger_artefact",
        acceptable=["nan_from_sample", "fp16_overflow"],
        findings=["logger_artefact"],
        clear=["restart", "divergence", "level_shift"],
        first_bad_step=480,
        spikes=[{"metric": "loss.train", "start": 480, "peak": 480, "class": "not_a_spike"}],
        emulated="the Trainer (its file's layout and arithmetic), the NaN of one step and the clock",
    )


def starved_loader_csv(out: Path) -> Expect:
    """From step 301 on the loader reads from a file system that became slow: most of each step is spent waiting for data
    and the load of the GPU falls to a third; loss and gradients are those of a sound run. CSV."""
    config = settings(max_steps=700, lr=4e-3, seed=87, eval_every=0)
    job = Job(language(66), lambda: Recurrent(width=32), config, Clock("2026-05-09T08:00:00", 0.3))
    job.slower = lambda step: 2.6 if step > 300 else 1.0

    def watched(row: Row) -> Row:
        wobble = 1 + 0.1 * math.sin(row["step"])
        compute = 0.26 * (1 + 0.02 * math.cos(3 * row["step"]))
        return row | {
            "data_time": max(row["step_time"] - compute, 0.01 * wobble),
            "gpu_util": round(100 * min(compute / row["step_time"], 0.97) * (1 + 0.02 * math.sin(5 * row["step"]))),
        }

    rows = [watched(row) for row in job.run()]
    files.config_yaml(out, config)
    names = {"loss": "loss", "grad_norm": "grad_norm", "lr": "lr", "step_time": "step_time", "data_time": "data_time"}
    files.table(out / "log.csv", rows, names | {"gpu_util": "gpu_util"})
    return Expect(
        top="throughput_collapse",
        findings=["throughput", "utilization"],
        clear=["loss_spike", "nonfinite", "restart", "divergence", "stall"],
        first_bad_step=301,
        emulated="step times, waiting times and the load of the GPU",
    )
