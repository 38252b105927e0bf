"""Runs that stopped and went on: what came back with them, and what did not."""

from __future__ import annotations

import copy
from pathlib import Path

from making import checkpoints, console, files, tensorboard
from making.clock import Clock
from making.data import clusters, language
from making.expect import Expect, spike
from making.models import Perceptron, Recurrent, Transformer
from making.training import Config, Job, Row, every, optimizer_for, order, rate, settings

SMALL = {"loss": "loss", "lr": "lr", "grad_norm": "grad_norm"}


def _job(config: Config, seed: int, start: str, samples: int = 12000) -> Job:
    return Job(language(seed, samples), lambda: Recurrent(width=40, embedding=16), config, Clock(start, 0.25))


def _resumed(job: Job, config: Config, downtime: float, optimizer: bool = True) -> Job:
    """A new process: the model's weights, and the optimizer's state where it was saved."""
    again = Job(job.task, lambda: copy.deepcopy(job.model), config, job.clock)
    if optimizer:
        again.optimizer.load_state_dict(copy.deepcopy(job.optimizer.state_dict()))
    again.clock.wait(downtime)
    return again


def optimizer_lost_jsonl(out: Path) -> Expect:
    """Stopped after step 300 and resumed from weights alone: Adam begins with empty moments and steps at full length,
    the loss jumps right after the resume and is back within some steps; the last checkpoint counts the optimizer's
    steps from the resume. JSONL with both lives, two checkpoints."""
    config = settings(max_steps=500, lr=0.03, beta2=0.999, batch_size=32, seed=71, schedule="constant", eval_every=50)
    task = language(51, 17000, context=24)
    job = Job(task, lambda: Transformer(24, 1, 1, 24), config, Clock("2026-04-13T08:00:00", 0.25))
    before = list(job.run(last=300))
    checkpoints.safetensors(out / "checkpoints" / "step_300" / "model.safetensors", job.model)
    job = _resumed(job, config, 5400, optimizer=False)
    after = list(job.run(first=301))
    checkpoints.full(out / "checkpoints" / "step_500.pt", job, 500)
    files.config_yaml(out, config)
    files.jsonl(out / "metrics.jsonl", before + after)
    log = [
        console.logging(before[0], "INFO", "training from scratch"),
        console.logging(before[-1], "INFO", "received SIGTERM, stopping after step 300"),
        console.logging(after[0], "INFO", "loaded checkpoints/step_300/model.safetensors, resuming at step 301"),
    ]
    files.lines(out / "train.log", log)
    return Expect(
        top="optimizer_state_lost",
        acceptable=["crash_and_restart"],
        findings=["resume_break"],
        clear=["nonfinite", "stall", "lr_schedule"],
        attempts=2,
        first_bad_step=301,
        spikes=[spike(before + after, 301)],
        emulated="the scheduler's text and the clock",
    )


def rollback_tensorboard(out: Path) -> Expect:
    """The node died at step 347 and the run went on from the checkpoint of step 300 with all its state: steps 301 to
    347 were done twice, and nothing else is wrong. Two event files and the console."""
    config = settings(max_steps=600, lr=5e-3, seed=72, save_every=100)
    job = _job(config, 52, "2026-04-14T22:10:00")
    started = job.clock.now
    rows = list(job.run(last=300))
    saved = copy.deepcopy((job.model, job.optimizer.state_dict()))
    rows += job.run(first=301, last=347)
    job.model = saved[0]
    job.optimizer = optimizer_for(job.model, config)
    job.optimizer.load_state_dict(saved[1])
    job.clock.wait(1260)
    restarted = job.clock.now
    again = list(job.run(first=301))
    files.config_yaml(out, config)
    tensorboard.event_file(out / "tb", every(rows, 2), started, pid=2201)
    tensorboard.event_file(out / "tb", every(again, 2), restarted, pid=318)
    last = rows[-1]
    log = [
        console.logging(rows[0], "INFO", "starting training"),
        *(console.logging(rows[s - 1], "INFO", f"saved checkpoints/step_{s}.pt") for s in (100, 200, 300)),
        console.logging(last, "ERROR", "NCCL error: remote process exited or there was a network error"),
        "slurmstepd: error: *** JOB 88123 ON trainer-0 CANCELLED DUE TO NODE FAILURE ***",
        console.logging(again[0], "INFO", "resumed from checkpoints/step_300.pt (model, optimizer, scheduler, data position)"),
        console.logging(again[-1], "INFO", "training finished"),
    ]
    files.lines(out / "train.log", log)
    return Expect(
        top="crash_and_restart",
        findings=["restart"],
        clear=["loss_spike", "nonfinite", "resume_break", "lr_schedule"],
        attempts=2,
        first_bad_step=301,
        emulated="the scheduler's and NCCL's text and the clock",
    )


def data_restarted_jsonl(out: Path) -> Expect:
    """After the resume at step 401 the data loader begins with its first batch again: the manifest has the order of
    step 1 once more, and half of the data are never seen. JSONL and a manifest."""
    config = settings(max_steps=700, lr=3e-3, seed=73, batch_size=24, eval_every=100, schedule="constant")
    clock = Clock("2026-04-15T08:00:00", 0.03)
    job = Job(clusters(53, samples=17000, spread=0.9), lambda: Perceptron(width=128), config, clock)
    before = list(job.run(last=400))
    job = _resumed(job, config, 900)
    job.ids = lambda step: order(config, len(job.task), step - 400)
    after = list(job.run(first=401))
    files.config_yaml(out, config)
    files.jsonl(out / "metrics.jsonl", every(before + after, 2))
    files.manifest_jsonl(out / "batches.jsonl", before + after, job.task)
    log = [
        console.logging(before[-1], "INFO", "preempted, saved step_400.pt"),
        console.logging(after[0], "INFO", "resumed from step_400.pt (model, optimizer, scheduler)"),
    ]
    files.lines(out / "train.log", log)
    return Expect(
        top="data_order_restarted",
        acceptable=["crash_and_restart"],
        findings=["repeated_data"],
        clear=["loss_spike", "nonfinite", "lr_schedule"],
        attempts=2,
        first_bad_step=401,
    )


def schedule_reset_csv(out: Path) -> Expect:
    """After the resume at step 401 the schedule begins with its warmup again and never gets to its end: the loss stops
    falling while the rate is high once more. CSV."""
    config = settings(max_steps=700, lr=0.01, seed=74, eval_every=0)
    job = _job(config, 54, "2026-04-16T08:00:00")
    before = list(job.run(last=400))
    job = _resumed(job, config, 3600)
    job.lr = lambda step: rate(config, step - 400)
    after = list(job.run(first=401))
    files.config_yaml(out, config)
    files.table(out / "log.csv", before + after, SMALL | {"time": "time"})
    log = [
        console.logging(before[-1], "INFO", "preempted, saved step_400.pt"),
        console.logging(after[0], "INFO", "resumed from step_400.pt (model, optimizer)"),
    ]
    files.lines(out / "train.log", log)
    return Expect(
        top="lr_schedule_reset",
        acceptable=["crash_and_restart", "lr_jump"],
        findings=["lr_schedule"],
        clear=["nonfinite"],
        attempts=2,
        first_bad_step=401,
    )


def _two_launches(out: Path, config: Config, change: Config, seed: int, start: str) -> list[Row]:
    """400 steps, then the rest under a changed config; both configs lie beside the log."""
    job = _job(config, seed, start)
    files.config_yaml(out, config, f"config_{start[:10]}.yaml")
    rows = list(job.run(last=400))
    stopped = rows[-1]
    job = _resumed(job, config | change, 40000)
    if "label_smoothing" in change:
        smooth = change["label_smoothing"]
        plain = job.task.loss
        job.task.loss = lambda model, x, y: (1 - smooth) * plain(model, x, y) - smooth * model(x).log_softmax(-1).mean()
    seen = 400 * config["batch_size"]
    size = (config | change)["batch_size"]
    shuffled = order(config | {"batch_size": len(job.task)}, len(job.task), 1)
    job.ids = lambda step: shuffled[seen + (step - 401) * size : seen + (step - 400) * size]
    rows += job.run(first=401)
    files.config_yaml(out, config | change, f"config_{rows[-1]['time']:.0f}.yaml")
    for row in rows:
        row["samples"] = len(row["ids"])
    files.jsonl(out / "metrics.jsonl", rows, files.NAMES | {"samples": "train/batch_size"})
    log = [
        console.logging(stopped, "INFO", "stopped by user, saved step_400.pt"),
        console.logging(rows[400], "INFO", "resumed from step_400.pt (model, optimizer, scheduler, data position)"),
    ]
    files.lines(out / "train.log", log)
    return rows


def batch_size_changed_jsonl(out: Path) -> Expect:
    """The second launch runs with batches of 4 instead of 24: the loss and the gradient norm scatter more from step 401
    on. Two configs and a JSONL."""
    config = settings(max_steps=700, lr=4e-3, seed=75, batch_size=24, eval_every=100)
    _two_launches(out, config, {"batch_size": 4}, 55, "2026-04-17T08:00:00")
    return Expect(
        top="batch_size_changed",
        acceptable=["config_changed"],
        findings=["config_change"],
        clear=["nonfinite"],
        attempts=2,
        first_bad_step=401,
    )


def config_changed_jsonl(out: Path) -> Expect:
    """The second launch trains with label smoothing of 0.15: the loss steps up at step 401 and stays, because it is
    another loss. Two configs and a JSONL."""
    config = settings(max_steps=700, lr=4e-3, seed=76, label_smoothing=0.0, eval_every=0)
    _two_launches(out, config, {"label_smoothing": 0.15}, 56, "2026-04-20T08:00:00")
    return Expect(
        top="config_changed",
        acceptable=["crash_and_restart"],
        findings=["config_change"],
        clear=["nonfinite"],
        attempts=2,
        first_bad_step=401,
    )
