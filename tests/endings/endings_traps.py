"""Runs whose logs hold words of harm that did not end them, and a finish that was none."""

import re

from endings_jsonl import run as jsonl_run
from endings_kit import FOLDERS, SITES, epoch_lines, milli, plain_lines, points, staged, start_of, trace, write
from endings_recorded import RECORDED
from endings_slurm import more, trainer
from endings_words import cancelled


@staged("console")
def console_words_of_harm_finished(folder, rng):
    """Settings and counters speak of signals, limits and memory; the run finishes."""
    start, total = start_of(rng), 8000
    rows = points(rng, total, 20, 0.4, start)
    begin = [
        "handlers installed for SIGTERM, SIGUSR1 (checkpoint on preemption)", "scheduler time limit: 24:00:00, stop 10 min before it",
        "nccl timeout set to 600 s, watchdog enabled, TORCH_NCCL_ASYNC_ERROR_HANDLING=1", "data: 1203 records skipped, 0 errors, 17 decode failures tolerated",
        "oom guard: batch is halved when CUDA runs out of memory (not triggered)", "early stopping: disabled; nan check: raise on nan",
    ]  # fmt: skip
    text = [
        f"{milli(start)} - INFO - args: max_steps={total} seed=7 batch_size=64",
        *(f"{milli(start + 1)} - INFO - {line}" for line in begin),
    ]
    closing = [f"{milli(rows[-1][1] + 4)} - INFO - max_steps reached, training finished (0 preemptions, 0 oom retries, 0 errors)"]
    write(folder, "train.log", text + plain_lines(rows, total) + closing)
    return rows[-1][1] + 4


@staged("console")
def console_export_fails_after_training(folder, rng):
    """Training says that it is complete; the same program then dies while it exports."""
    start, root = start_of(rng), rng.choice(FOLDERS)
    lines, time = epoch_lines(rng, 30, 30, start)
    calls = [
        (f"{root}/main.py", 190, "<module>", "main()"), (f"{root}/main.py", 183, "main", "torch.onnx.export(model, sample, 'model.onnx', opset_version=17)"),
        (f"{rng.choice(SITES)}/torch/onnx/_internal/torchscript_exporter/utils.py", 551, "export", "_export("),
    ]  # fmt: skip
    said = [f"{milli(time + 1)} Training complete. Best val_acc 84.77%", f"{milli(time + 2)} exporting to model.onnx"]
    error = (
        "torch.onnx.errors.UnsupportedOperatorError: Exporting the operator 'aten::fft_rfft2' to ONNX opset version 17 is not supported."
    )
    write(folder, "train.log", [f"{milli(start)} Namespace(epochs=30, batch_size=128, lr=0.001)", *lines, *said, *trace(calls, error)])
    return time + 4


@staged("console")
def console_worker_bus_error(folder, rng):
    """The shared memory of the container is too small for the loader's workers."""
    start, root, pid = start_of(rng), rng.choice(FOLDERS), rng.randrange(200, 9000)
    rows = points(rng, rng.randrange(20, 60) * 20, 20, 0.3, start)
    site = rng.choice(SITES)
    shm = "It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit."
    signal_line = f"RuntimeError: DataLoader worker (pid {pid}) is killed by signal: Bus error. {shm}"
    first = ["ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm)."]
    loader = [(f"{site}/torch/utils/data/_utils/signal_handling.py", 73, "handler", "_error_if_any_worker_fails()")]
    outer = [(f"{root}/train.py", 133, "<module>", "main()"), (f"{root}/train.py", 101, "main", "for batch in loader:")]
    cause = ["", "The above exception was the direct cause of the following exception:", ""]
    text = first + trace(loader, signal_line) + cause + trace(outer, f"RuntimeError: DataLoader worker (pid(s) {pid}) exited unexpectedly")
    write(folder, "nohup.out", [f"{milli(start)} - INFO - args: max_steps=40000 num_workers=8", *plain_lines(rows, 40000), *text])
    return rows[-1][1] + 1


@staged("JSONL + stderr")
def jsonl_logged_exceptions_finished(folder, rng):
    """The sampler of pictures fails now and then, is logged with its traceback, and training goes on to its end."""
    rows, lines = jsonl_run(folder, rng, 9000)
    calls = [
        (f"{FOLDERS[0]}/sample.py", 44, "log_images", "grid = make_grid(decode(z), nrow=4)"),
        (f"{FOLDERS[0]}/sample.py", 19, "decode", "raise TimeoutError('renderer did not answer')"),
    ]
    text = [f"{milli(rows[0][1] - 8)} INFO training for 9000 steps"]
    for step in (2000, 4000, 8000):
        text += [
            f"{milli(rows[step // 10][1])} ERROR sampling failed at step {step}, skipped",
            *trace(calls, "TimeoutError: renderer did not answer"),
        ]
    text.append(f"{milli(rows[-1][1] + 2)} INFO training finished: 9000/9000 steps, final checkpoint written")
    write(folder, "metrics.jsonl", lines)
    write(folder, "stderr.log", text)
    return rows[-1][1] + 2


@staged("HF Trainer + slurm, two jobs")
def slurm_requeued_finished(folder, rng):
    """The first job meets its time limit at step 310; the second goes on from checkpoint-300 and finishes."""
    job, node, last = trainer(folder, rng, "hf_finished", 310)
    more(folder, job, [cancelled("JOB", job, node, last, "TIME LIMIT")])
    out = (RECORDED / "hf_finished/stdout.log").read_text(encoding="utf-8").splitlines()
    logged = [n for n, line in enumerate(out) if "'loss'" in line]
    write(folder, f"slurm-{job + 7}.out", ["Resuming training from out/checkpoint-300", *out[logged[30] :]])
    bars = (RECORDED / "hf_finished/stderr.log").read_bytes().decode().split("\r")
    begin = next(n for n, bar in enumerate(bars) if re.search(r" 301/600 ", bar))
    write(folder, f"slurm-{job + 7}.err", "\r".join(["", *bars[begin:]]))
    for step in (450, 600):
        source = RECORDED / f"hf_finished/out/checkpoint-{step}/trainer_state.json"
        write(folder, f"out/checkpoint-{step}/trainer_state.json", source.read_text(encoding="utf-8"))
    return last + 900
