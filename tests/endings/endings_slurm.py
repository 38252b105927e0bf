"""Hugging Face Trainer under slurm: .out, .err, trainer_state.json, sometimes a table of sacct beside them."""

import re

from endings_kit import SITES, staged, stamp, trace, write
from endings_recorded import copy_recording
from endings_words import cancelled, cuda_memory

LOGGER = "HF Trainer + slurm"
FIELDS = ["JobID", "JobName", "Partition", "AllocCPUS", "State", "ExitCode", "Start", "End", "Elapsed"]


def job_of(rng):
    return rng.randrange(10**5, 9 * 10**6), f"gpu-{rng.randrange(1, 64):03d}"


def trainer(folder, rng, recording, upto=None):
    """The recorded Trainer as slurm-<job>.out and .err, where wanted cut after step `upto`; returns job, node and time of the last line."""
    job, node = job_of(rng)
    names = {"stdout.log": f"slurm-{job}.out", "stderr.log": f"slurm-{job}.err"}
    last = copy_recording(recording, folder, rng, names, lambda inside: not re.search(r"metrics\.jsonl|_results\.json", inside))
    if upto:
        cut(folder, job, upto)
    return job, node, last


def cut(folder, job, upto):
    out, err = (folder / f"slurm-{job}.{end}" for end in ("out", "err"))
    logged = 0
    kept = []
    for line in out.read_text(encoding="utf-8").splitlines():
        logged += "'loss'" in line
        if logged * 10 > upto:
            break
        kept.append(line)
    out.write_text("\n".join(kept) + "\n", encoding="utf-8")
    bars = err.read_bytes().decode().split("\r")
    later = [n for n, bar in enumerate(bars) if any(int(step) > upto for step in re.findall(r" (\d+)/600 ", bar))]
    err.write_bytes("\r".join(bars[: later[0]] if later else bars).encode())
    for state in folder.glob("out/checkpoint-*"):
        if int(state.name.rsplit("-")[-1]) > upto:
            for path in state.iterdir():
                path.unlink()
            state.rmdir()


def more(folder, job, lines, end="err"):
    path = folder / f"slurm-{job}.{end}"
    text = path.read_bytes().decode() if path.exists() else ""
    path.write_bytes((text + ("" if text.endswith("\n") or not text else "\n") + "\n".join(lines) + "\n").encode())


def sacct(folder, job, rows, last, name="sacct.txt"):
    """The table of `sacct -j JOB`; rows: (suffix, job name, state, exit code)."""
    start = stamp(last - 7200, "%Y-%m-%dT%H:%M:%S")
    end = stamp(last + 2, "%Y-%m-%dT%H:%M:%S")
    cells = [FIELDS, ["-" * 12 if field != "Start" else "-" * 19 for field in FIELDS]]
    cells += [
        [f"{job}{suffix}", label, "gpu" if not suffix else "", "16", state, code, start, end, "02:00:02"]
        for suffix, label, state, code in rows
    ]
    write(folder, name, [" ".join(f"{cell:>{20 if n in (6, 7) else 13}}" for n, cell in enumerate(row)) for row in cells])


def stopped(folder, rng, why, upto, step_line=True):
    job, node, last = trainer(folder, rng, "hf_killed", upto)
    lines = ["srun: Job step aborted: Waiting up to 32 seconds for job step to finish."] if step_line else []
    lines += [cancelled("STEP", f"{job}.0", node, last + 3, why)] if step_line else []
    more(folder, job, [*lines, cancelled("JOB", job, node, last + 3, why)])
    return last + 3


@staged(LOGGER)
def slurm_time_limit(folder, rng):
    return stopped(folder, rng, "TIME LIMIT", 420)


@staged(LOGGER)
def slurm_caught_then_time_limit(folder, rng):
    """Early on a download fails, is printed with its traceback and tried again; the time limit is what ends the run."""
    last = stopped(folder, rng, "TIME LIMIT", 410)
    err = next(folder.glob("slurm-*.err"))
    calls = [(f"{SITES[0]}/requests/adapters.py", 713, "send", "raise ReadTimeout(e, request=request)")]
    said = trace(
        calls, "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='hub.example.org', port=443): Read timed out. (read timeout=10)"
    )
    retry = ["WARNING:data.fetch:could not fetch shard 00017, retrying in 1s [attempt 1 of 5]"]
    err.write_bytes(("\n".join([*said, *retry]) + "\n").encode() + err.read_bytes())
    return last


@staged(LOGGER)
def slurm_scancel(folder, rng):
    return stopped(folder, rng, "", 260, step_line=False)


@staged(LOGGER)
def slurm_preempted(folder, rng):
    return stopped(folder, rng, "PREEMPTION", 340)


@staged(LOGGER)
def slurm_node_failure(folder, rng):
    return stopped(folder, rng, "NODE FAILURE", 380, step_line=False)


@staged(LOGGER)
def slurm_oom_kill(folder, rng):
    job, node, last = trainer(folder, rng, "hf_killed", 310)
    more(folder, job, [
        f"slurmstepd: error: Detected 1 oom_kill event in StepId={job}.0. Some of the step tasks have been OOM Killed.",
        f"srun: error: {node}: task 0: Out Of Memory",
    ])  # fmt: skip
    return last + 2


@staged(LOGGER + " + sacct")
def slurm_sacct_timeout(folder, rng):
    """Neither stream says a word; the table of sacct does."""
    job, _, last = trainer(folder, rng, "hf_killed", 400)
    sacct(
        folder,
        job,
        [("", "finetune", "TIMEOUT", "0:0"), (".batch", "batch", "CANCELLED", "0:15"), (".extern", "extern", "COMPLETED", "0:0")],
        last,
    )
    return last + 2


@staged(LOGGER + " + sacct")
def slurm_sacct_out_of_memory(folder, rng):
    job, _, last = trainer(folder, rng, "hf_killed", 290)
    sacct(
        folder,
        job,
        [("", "finetune", "OUT_OF_ME+", "0:125"), (".batch", "batch", "OUT_OF_ME+", "0:125"), (".extern", "extern", "COMPLETED", "0:0")],
        last,
    )
    return last + 2


@staged(LOGGER + " + sacct")
def slurm_sacct_cancelled(folder, rng):
    job, _, last = trainer(folder, rng, "hf_killed", 220)
    rows = [
        ("", "finetune", f"CANCELLED by {rng.randrange(1000, 9000)}", "0:0"),
        (".batch", "batch", "CANCELLED", "0:15"),
        (".0", "python", "CANCELLED", "0:15"),
    ]
    sacct(folder, job, rows, last, "job.sacct")
    return last + 2


@staged(LOGGER + " + sacct")
def slurm_sacct_node_fail(folder, rng):
    job, _, last = trainer(folder, rng, "hf_killed", 350)
    sacct(
        folder,
        job,
        [("", "finetune", "NODE_FAIL", "1:0"), (".batch", "batch", "CANCELLED", ""), (".extern", "extern", "CANCELLED", "")],
        last,
    )
    return last + 2


@staged(LOGGER + " + sacct")
def slurm_finished(folder, rng):
    job, _, last = trainer(folder, rng, "hf_finished")
    sacct(
        folder,
        job,
        [("", "finetune", "COMPLETED", "0:0"), (".batch", "batch", "COMPLETED", "0:0"), (".extern", "extern", "COMPLETED", "0:0")],
        last,
    )
    return last


@staged("HF Trainer, its state alone")
def trainer_state_finished(folder, rng):
    """No console was kept; the state in the last checkpoint has reached its planned steps."""
    return copy_recording("hf_finished", folder, rng, {}, lambda inside: inside.endswith("checkpoint-600/trainer_state.json"))


@staged(LOGGER)
def slurm_metric_error(folder, rng):
    job, node, last = trainer(folder, rng, "hf_metric")
    more(folder, job, [f"srun: error: {node}: task 0: Exited with exit code 1"])
    return last


@staged("HF Trainer + console")
def trainer_ctrl_c(folder, rng):
    return copy_recording("hf_interrupt", folder, rng, {"stderr.log": "err.log", "stdout.log": "out.log"})


def frames(rng, *library):
    site = rng.choice(SITES)
    calls = [("/home/ines/ft/finetune.py", 88, "<module>", "main()"), ("/home/ines/ft/finetune.py", 80, "main", "trainer.train()")]
    inner = [("transformers/trainer.py", 2245, "train", "return inner_training_loop("), *library]
    return calls + [(f"{site}/{path}", line, name, source) for path, line, name, source in inner]


@staged(LOGGER)
def slurm_disk_full(folder, rng):
    job, node, last = trainer(folder, rng, "hf_killed", 300)
    library = [
        ("transformers/trainer.py", 2627, "_inner_training_loop", "self._maybe_log_save_evaluate("),
        ("transformers/trainer.py", 3096, "_maybe_log_save_evaluate", "self._save_checkpoint(model, trial)"),
        (
            "transformers/modeling_utils.py",
            3572,
            "save_pretrained",
            "safe_save_file(shard, os.path.join(save_directory, shard_file), metadata=metadata)",
        ),
        ("safetensors/torch.py", 286, "save_file", "serialize_file(_flatten(tensors), filename, metadata=metadata)"),
    ]
    error = "safetensors_rust.SafetensorError: Error while serializing: I/O error: No space left on device (os error 28)"
    more(folder, job, [*trace(frames(rng, *library), error), f"srun: error: {node}: task 0: Exited with exit code 1"])
    return last


@staged(LOGGER)
def slurm_cuda_oom(folder, rng):
    job, node, last = trainer(folder, rng, "hf_killed", 150)
    library = [
        ("transformers/trainer.py", 2560, "_inner_training_loop", "tr_loss_step = self.training_step(model, inputs, num_items_in_batch)"),
        ("transformers/trainer.py", 3782, "training_step", "self.accelerator.backward(loss, **kwargs)"),
        ("torch/_tensor.py", 648, "backward", "torch.autograd.backward("),
    ]
    more(
        folder, job, [*trace(frames(rng, *library), cuda_memory(rng, other=False)), f"srun: error: {node}: task 0: Exited with exit code 1"]
    )
    return last
