"""Kinds of out of memory, from the words of torch, slurm and the kernel, and from the metrics before them."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import case, only, read, top, write

from forensics.detectors import memory
from forensics.run import memory_kinds

GIB = 2**30
TAIL = "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."


def cuda(tried: str, capacity: str, free: str, held: str, allocated: str, hole: str) -> str:
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of {capacity} of which {free}"
        f" is free. Including non-PyTorch memory, this process has {held} memory in use. Of the allocated memory {allocated} is allocated"
        f" by PyTorch, and {hole} is reserved by PyTorch but unallocated. {TAIL}"
    )


FULL = cuda("394.00 MiB", "39.39 GiB", "131.31 MiB", "39.25 GiB", "38.51 GiB", "251.12 MiB")
OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 16.00 MiB (GPU 0; 7.76 GiB total capacity; 1.60 GiB already allocated; 26.31 MiB"
    " free; 1.66 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb"
)


def trace(error: str, *frames: str) -> str:
    where = "".join(f'  File "/src/train.py", line {10 * i + 7}, in {name}\n    x = f(x)\n' for i, name in enumerate(("<module>", *frames)))
    return f"Traceback (most recent call last):\n{where}{error}\n"


def test_sizes_are_read_from_the_message_of_torch_2() -> None:
    found = memory_kinds.sizes(cuda("7.50 GiB", "21.99 GiB", "6.62 GiB", "15.35 GiB", "6.15 GiB", "8.71 GiB"))
    want = {"tried": 7.5, "capacity": 21.99, "free": 6.62, "held": 15.35, "allocated": 6.15, "hole": 8.71}
    assert found == pytest.approx({k: v * GIB for k, v in want.items()})


def test_sizes_are_read_from_the_message_of_torch_1() -> None:
    found = memory_kinds.sizes(
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.78 GiB total capacity; 10.50 GiB already allocated;"
        " 200.00 MiB free; 14.20 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb"
    )
    assert found["hole"] == pytest.approx(3.7 * GIB)
    assert (found["tried"], found["capacity"]) == pytest.approx((2 * GIB, 15.78 * GIB))


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        (trace(cuda("2.00 GiB", "39.39 GiB", "1.12 GiB", "38.25 GiB", "30.10 GiB", "7.31 GiB"), "main"), "fragmentation"),
        (trace(FULL, "main", "evaluate", "forward"), "evaluation"),
        (trace(FULL, "main", "validation_step", "forward"), "evaluation"),
        (trace(FULL, "main", "save_checkpoint", "gather"), "saving"),
        (trace(cuda("22.78 GiB", "39.39 GiB", "12.73 GiB", "26.60 GiB", "26.10 GiB", "0.20 GiB"), "main"), "one_request"),
        (trace(cuda("1.00 GiB", "39.39 GiB", "0.31 GiB", "14.91 GiB", "14.50 GiB", "0.12 GiB"), "main"), "shared"),
        (trace(FULL, "main", "backward"), "open"),
        (trace(FULL, "main", "checkpoint", "extract_val"), "open"),  # recomputed activations; no evaluation
        (trace(OLD, "main"), "shared"),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=440575.0. Some of the step tasks have been OOM Killed.\n", "host"),
        ("Memory cgroup out of memory: Killed process 1234 (python3) total-vm:91234kB, anon-rss:812kB\n", "host"),
        ("srun: error: nid001277: tasks 1-3: Out Of Memory\n", "host"),
        ("Last State: Terminated  Reason: OOMKilled  Exit Code: 137\n", "host"),
        (trace("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 12.0 GiB for an array: MemoryError", "main"), "host"),
    ],
)  # fmt: skip
def test_kind_from_the_words(tmp_path: Path, log: str, kind: str) -> None:
    found = only(list(memory.detect(read(write(tmp_path / "r", log=log)))))
    assert found.facts.kind == kind, found.title
    assert found.severity == "critical"
    assert found.facts.step == 300


def test_evaluation_by_the_line_that_begins_it(tmp_path: Path) -> None:
    folder = write(tmp_path / "r", log="step 300 loss 1.51\n***** Running Evaluation *****\n" + trace(FULL, "main", "forward"))
    assert only(list(memory.detect(read(folder)))).facts.kind == "evaluation"


def test_evaluation_by_its_cadence(tmp_path: Path) -> None:
    folder = write(tmp_path / "r", 399, log=trace(FULL, "main", "forward"), val_loss=lambda i: 2.0 - i / 1000 if i % 100 == 0 else None)
    found = only(list(memory.detect(read(folder))))
    assert found.facts.kind == "evaluation"
    assert "step 400" in found.facts.why
    elsewhere = write(tmp_path / "s", 360, log=trace(FULL, "main", "forward"), val_loss=lambda i: 2.0 - i / 1000 if i % 100 == 0 else None)
    assert only(list(memory.detect(read(elsewhere)))).facts.kind == "open"


def test_a_leak_grows_and_a_long_batch_jumps(tmp_path: Path) -> None:
    leak = write(tmp_path / "leak", log=trace(FULL, "main"), gpu_memory_allocated_gib=lambda i: 10 + 0.08 * i)
    found = next(f for f in memory.detect(read(leak)) if f.facts.said)
    assert found.facts.kind == "leak"
    assert found.facts.per_step == pytest.approx(0.08, rel=0.05)
    jump = write(tmp_path / "jump", log=trace(FULL, "main"), seq_len=lambda i: 512 + i % 7 if i < 300 else 2048)
    assert only(list(memory.detect(read(jump)))).facts.kind == "long_batch"


def test_the_first_steps(tmp_path: Path) -> None:
    rows = write(tmp_path / "r", 2, log=trace(FULL, "main"))
    assert only(list(memory.detect(read(rows)))).facts.kind == "first_step"


def test_the_kind_is_in_title_answer_and_interventions(tmp_path: Path) -> None:
    log = trace(cuda("2.00 GiB", "39.39 GiB", "1.12 GiB", "38.25 GiB", "30.10 GiB", "7.31 GiB"), "main")
    got = case(write(tmp_path / "r", log=log))
    assert top(got)["id"] == "out_of_memory"
    assert top(got)["title"] == "Out of memory: fragmentation"
    assert "fragmentation" in got["answer"]
    assert "expandable_segments" in top(got)["interventions"][0]


@pytest.mark.parametrize("line", [
    "command terminated with exit code 137",
    "/var/spool/job/slurm_script: line 12: 4242 Killed                  python train.py",
    "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL",
    "RuntimeError: DataLoader worker (pid 1817) is killed by signal: Killed.",
])  # fmt: skip
def test_a_killed_process_is_a_suspicion_and_no_more(tmp_path: Path, line: str) -> None:
    got = case(write(tmp_path / "r", log=line + "\n"))
    assert [f["severity"] for f in got["findings"] if f["kind"] == "memory"] == ["info"], line
    suspected = next(h for h in got["hypotheses"] if h["id"] != "unknown")
    assert suspected["id"] == "out_of_memory" and suspected["probability"] < 0.95  # from there on the page says "almost certainly"


def test_the_number_137_is_no_exit_code_by_itself(tmp_path: Path) -> None:
    log = 'Traceback (most recent call last):\n  File "/src/a.py", line 137, in main\n    f()\nValueError: bad value\n'
    assert not list(memory.detect(read(write(tmp_path / "r", log=log))))


def test_a_process_that_the_scheduler_killed_is_none_of_it(tmp_path: Path) -> None:
    log = "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-06-06T13:49:25 DUE TO TIME LIMIT ***\nsrun: error: node3: task 7: Killed\n"
    assert not list(memory.detect(read(write(tmp_path / "r", log=log))))


def test_memory_that_ran_out_before_another_launch_trained_ended_nothing(tmp_path: Path) -> None:
    said = "RuntimeError: CUDA error: out of memory\n"
    steps = "".join(f"step {i} loss {2 - i / 100:.3f}\n" for i in range(60))
    (tmp_path / "before").mkdir(), (tmp_path / "after").mkdir()
    (tmp_path / "before/train.log").write_text(said + steps)
    (tmp_path / "after/train.log").write_text(steps + said)
    before, after = (only(list(memory.detect(read(tmp_path / name)))) for name in ("before", "after"))
    assert (before.severity, before.facts.said) == ("info", False)
    assert (after.severity, after.facts.said) == ("critical", True)
