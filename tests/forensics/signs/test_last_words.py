"""Signs of how a run ended, from the lines of its log."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import read, write

from forensics.detectors import ending
from forensics.signs import last_words
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Sign, Symptoms

TRACE = 'Traceback (most recent call last):\n  File "/src/train.py", line 42, in {where}\n    x = f(x)\n'
KEY = TRACE.format(where="step") + "KeyError: 'val'\n"
SAVE = TRACE.format(where="save_checkpoint") + "RuntimeError: PytorchStreamWriter failed writing file data/0: file write failed\n"
DISK = TRACE.format(where="save") + "OSError: [Errno 28] No space left on device\n"
NO_FOLDER = TRACE.format(where="save_checkpoint") + "FileNotFoundError: [Errno 2] No such file or directory: 'out/model_10.pth'\n"
KEY_REFUSED = TRACE.format(where="_save_checkpoint") + "wandb.errors.errors.AuthenticationError: the API key could not be verified\n"
QUIT = TRACE.format(where="trace_dispatch").partition("\n")[2] + "bdb.BdbQuit\n"
NAN = TRACE.format(where="step") + "ValueError: loss is nan, stopping training\n"
CUDA = TRACE.format(where="step") + "RuntimeError: CUDA error: an illegal memory access was encountered\n"
ASSERT = TRACE.format(where="step") + "RuntimeError: CUDA error: device-side assert triggered\n"
PTX = TRACE.format(where="step") + "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.\n"
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
CTRL_C = TRACE.format(where="step") + "KeyboardInterrupt\n"
KILLED = "/bin/bash: line 7: 4242 Killed    python train.py\n"
DONE = "Training completed\n"
PEER = "RuntimeError: [gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:49551: Connection reset by peer\n"
INSIDE = TRACE.format(where="backward") + "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR\n"
CODE = "srun: error: n17: task 5: Exited with exit code 1\n"


def looked(sign: str, folder: Path) -> Sign:
    run = read(folder)
    found: Sign = getattr(last_words, sign)(Symptoms(run, tuple(ending.detect(run))))
    assert found.text.endswith((".", "\u2026")), found
    return found


@pytest.mark.parametrize(("sign", "log", "state", "word"), [
    ("exception_quoted", KEY, SEEN, "KeyError"),
    ("exception_quoted", DISK, ABSENT, "No space left"),
    ("exception_quoted", NAN, ABSENT, "nan"),
    ("exception_quoted", DONE, ABSENT, "finished"),
    ("exception_quoted", "", CANNOT_TELL, "no line says"),
    ("disk_full_quoted", DISK, SEEN, "disk full"),
    ("disk_full_quoted", TRACE.format(where="save") + "RuntimeError: basic_ios::clear: iostream error\n", SEEN, "disk full"),
    ("disk_full_quoted", KEY, ABSENT, "KeyError"),
    ("launcher_says_failed", CODE, SEEN, "exit code 1"),
    ("launcher_says_failed", PEER + CODE, ABSENT, "exit code 1"),
    ("peer_gone", PEER + CODE, SEEN, "Connection reset by peer"),
    ("peer_gone", CODE, ABSENT, "No line of a rank"),
    ("peer_gone", PEER + KEY, ABSENT, "KeyError"),
    ("exception_quoted", QUIT, SEEN, "BdbQuit"),
    ("hardware_fault_quoted", XID, SEEN, "Xid"),
    ("hardware_fault_quoted", CUDA, ABSENT, "CUDA error"),
    ("cuda_error_ended_it", CUDA, SEEN, "illegal memory access"),
    ("cuda_error_ended_it", ASSERT, ABSENT, "device-side assert"),
    ("cuda_error_ended_it", INSIDE, ABSENT, "CUDNN_STATUS"),
    ("library_failed_inside", INSIDE, SEEN, "CUDNN_STATUS"),
    ("library_failed_inside", CUDA, ABSENT, "illegal memory access"),
    ("exception_quoted", INSIDE, ABSENT, "CUDNN_STATUS"),
    ("exception_quoted", ASSERT, SEEN, "device-side assert"),
    ("cuda_error_ended_it", PTX, ABSENT, "unsupported toolchain"),
    ("exception_quoted", PTX, SEEN, "unsupported toolchain"),
    ("cuda_error_ended_it", XID, ABSENT, "Xid"),
    ("stopped_by_others_quoted", CTRL_C, SEEN, "by hand"),
    ("stopped_by_others_quoted", KEY, ABSENT, "KeyError"),
    ("finished_as_planned", DONE, SEEN, "finished"),
    ("finished_as_planned", KEY, ABSENT, "Died"),
    ("finished_as_planned", "", CANNOT_TELL, "no line says"),
    ("error_explains_end", KEY, SEEN, "KeyError"),
    ("error_explains_end", DONE, ABSENT, "No error"),
    ("error_explains_end", "", CANNOT_TELL, "no line says"),
    ("save_failed", SAVE, SEEN, "PytorchStreamWriter"),
    ("save_failed", DISK, SEEN, "in save"),
    ("save_failed", KEY, ABSENT, "names no save"),
    ("save_failed", NO_FOLDER, ABSENT, "another reason"),
    ("save_failed", KEY_REFUSED, ABSENT, "another reason"),
    ("disk_full_quoted", SAVE, SEEN, "disk full"),
    ("disk_full_quoted", NO_FOLDER, ABSENT, "No such file"),
    ("save_failed", DONE, CANNOT_TELL, "no exception"),
    ("exception_repeats", KEY, CANNOT_TELL, "one attempt"),
    ("died_before_first_step", KEY, ABSENT, "step 300"),
    ("stopped_short_of_plan", KEY, CANNOT_TELL, "no planned length"),
])  # fmt: skip
def test_the_last_line_tells(tmp_path: Path, sign: str, log: str, state: str, word: str) -> None:
    found = looked(sign, write(tmp_path / "r", log=log))
    assert found.state == state and word in found.text, found


def test_an_exception_has_its_class_its_place_and_its_step(tmp_path: Path) -> None:
    found = looked("exception_quoted", write(tmp_path / "r", log=KEY))
    assert (found.numbers["kind"], found.numbers["first"], found.where) == ("KeyError", 300, "train.log line 1")


@pytest.mark.parametrize(("planned", "state"), [(1000, SEEN), (300, ABSENT)])
def test_a_plan_is_reached_or_not(tmp_path: Path, planned: int, state: str) -> None:
    found = looked("stopped_short_of_plan", write(tmp_path / "r", log=KEY, config={"max_steps": planned}))
    assert found.state == state and f"of {planned} planned" in found.text


def test_a_launch_that_dies_before_its_first_step(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(KEY)
    assert looked("died_before_first_step", tmp_path).state == SEEN


def test_one_exception_at_the_end_of_two_attempts_repeats(tmp_path: Path) -> None:
    steps = "".join(f"step {i} loss {2 - i / 100:.4f}\n" for i in range(1, 41))
    again = "Resuming training from step 20\n" + "".join(f"step {i} loss {2 - i / 100:.4f}\n" for i in range(21, 41))
    other = KEY.replace("KeyError: 'val'", "ValueError: no such thing")
    for name, last, state in (("same", KEY, SEEN), ("other", other, ABSENT)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.log").write_text(steps + KEY + again + last)
        found = looked("exception_repeats", tmp_path / name)
        assert found.state == state, found


@pytest.mark.parametrize(
    ("last", "state"), [("CUDA error: an illegal memory access was encountered", SEEN), ("uncorrectable ECC error", ABSENT)]
)
def test_an_error_of_cuda_repeats_as_an_exception_does(tmp_path: Path, last: str, state: str) -> None:
    """At its step again it is of the program; what a device says of itself is of the device however often."""
    line = f"terminate called after throwing an instance of 'c10::Error'\n  what():  {last}\n"
    steps = "".join(f"step {i} loss {2 - i / 100:.4f}\n" for i in range(1, 41))
    again = "Resuming training from step 20\n" + "".join(f"step {i} loss {2 - i / 100:.4f}\n" for i in range(21, 41))
    (tmp_path / "train.log").write_text(steps + line + again + line)
    assert looked("exception_repeats", tmp_path).state == state


def test_a_kill_without_a_word_is_no_stop_on_purpose(tmp_path: Path) -> None:
    folder = write(tmp_path / "r", log=KILLED)
    assert looked("killed_by_signal_unexplained", folder).state == SEEN
    assert looked("stopped_by_others_quoted", folder).state == ABSENT
    assert looked("killed_by_signal_unexplained", write(tmp_path / "q", log=KEY)).state == ABSENT


@pytest.mark.parametrize(("line", "own"), [
    ("RuntimeError: DataLoader worker (pid 1188) is killed by signal: Segmentation fault. \n", True),
    ("/var/spool/slurm_script: line 12: 4242 Segmentation fault      python train.py\n", True),
    ("/var/spool/slurm_script: line 12: 4242 Killed                  python train.py\n", False),
])  # fmt: skip
def test_a_signal_that_a_program_brings_on_itself_came_from_nobody(tmp_path: Path, line: str, own: bool) -> None:
    folder = write(tmp_path / "r", log=line)
    assert (looked("crashed_in_native_code", folder).state == SEEN) == own
    assert (looked("killed_by_signal_unexplained", folder).state == SEEN) == (not own)


def test_a_code_alone_names_nothing(tmp_path: Path) -> None:
    folder = write(tmp_path / "r", log=CODE)
    assert looked("launcher_says_failed", folder).state == SEEN
    assert looked("exception_quoted", folder).state == ABSENT
    assert looked("launcher_says_failed", write(tmp_path / "q", log=KEY)).state == ABSENT
