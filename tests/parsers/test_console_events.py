"""Lines that report events: kinds, levels, steps; tracebacks; settings; quoted program text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import parsers
from parsers.console_format import event_lines, printed_settings
from parsers.console_format.event_lines import Event, event_of, is_code, loss_scale, skipped, when
from parsers.console_format.line_prefix import Where
from parsers.console_format.tracebacks import Traceback


@pytest.mark.parametrize(
    ("text", "kind", "level", "step"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB", "oom", "error", None),
        ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.batch", "oom", "error", None),
        ("RuntimeError: [enforce fail at alloc_cpu.cpp:75] DefaultCPUAllocator: can't allocate memory", "oom", "error", None),
        ("slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-03-04T05:06:07 DUE TO TIME LIMIT ***", "scheduler", "error", None),
        ("slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-03-04T05:06:07 DUE TO PREEMPTION ***", "scheduler", "error", None),
        ("srun: error: Node failure on n7", "scheduler", "error", None),
        ("srun: Job step aborted: Waiting up to 32 seconds for job step to finish.", "scheduler", "warning", None),
        ("[rank2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=81, OpType=ALLREDUCE)", "nccl", "error", None),
        ("NCCL communicator was aborted on rank 3", "nccl", "warning", None),
        ("NVRM: Xid (PCI:0000:07:00): 79, GPU has fallen off the bus.", "hardware", "error", None),
        ("CUDA error: an illegal memory access was encountered", "hardware", "error", None),
        ("CUDA error: unspecified launch failure", "hardware", "error", None),
        ("[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4096, reducing to 2048", "overflow", "info", None),
        ("step 1: non-finite gradients, step skipped, loss scale 1.07374e+09 -> 5.36871e+08", "overflow", "info", None),
        ("Grad overflow on iteration 38", "overflow", "info", 38),
        ("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 512.0", "overflow", "info", None),
        ("Found NaN, decreased lg_loss_scale to 20.779", "overflow", "info", None),
        ("Found NaN, skipping step at loss_scale 8388608.0", "overflow", "info", None),
        ("Loss is nan, stopping training; loss_scale 1024", "nonfinite", "error", None),
        ("FloatingPointError: Loss is nan", "nonfinite", "error", None),
        ("NaN detected in loss at step 77", "nonfinite", "error", 77),
        ("WARNING Loss NaN/Inf detected (attempt 1/3), recovering from last.pt...", "nonfinite", "error", None),
        ("successfully saved checkpoint at iteration 300 to checkpoints", "checkpoint_saved", "info", 300),
        ("saved checkpoints/step_000150.pt", "checkpoint_saved", "info", 150),
        ("Saved checkpoint checkpoints/checkpoint_1_650.pt (epoch 1 @ 650 updates, score None)", "checkpoint_saved", "info", 650),
        ("Saving model checkpoint to out/checkpoint-500", "checkpoint_saved", "info", 500),
        ("resumed from step 400", "resume", "info", 400),
        ("resumed from checkpoints/step_000300.pt", "resume", "info", 300),
        ("Loading checkpoint and starting from iteration 8000", "resume", "info", 8000),
        ("Continuing training from global step 400", "resume", "info", 400),
        ("[after training is done]", "finished", "info", None),
        ("exiting program after 500 iterations", "finished", "info", None),
        ("`Trainer.fit` stopped: `max_steps=100` reached.", "finished", "info", None),
        ("Received signal 15, terminating", "signal", "error", None),
        ("Killed", "signal", "error", None),
        ("Timeout (0:00:25)!", "hang", "error", None),
        ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", "signal", "warning", None),
        ("Sending process 77 closing signal SIGTERM", "signal", "warning", None),
        (
            "Tried to log to step 3 that is less than the current step 9. Steps must be monotonically increasing",
            "rows_dropped",
            "warning",
            None,
        ),
        ("OSError: [Errno 28] No space left on device", "warning", "warning", None),
        ("DataLoader worker (pid 77) is killed by signal: Killed.", "warning", "error", None),
        ("***** Running training *****", "start", "info", None),
        ("***** Running Evaluation *****", "evaluation", "info", None),
        ("Running validation at step 500", "evaluation", "info", None),
        ("step 400: starting evaluation", "evaluation", "info", None),
        ("srun: error: nid001277: tasks 1-3: Out Of Memory", "oom", "error", None),
        ("Last State: Terminated, Reason: OOMKilled", "oom", "error", None),
        ("command terminated with exit code 137", "signal", "error", None),
        ("/var/spool/slurm_script: line 12: 4242 Killed                  python train.py", "signal", "error", None),
        ("RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: ...", "nccl", "error", None),
        ("init.cc:1247 NCCL WARN Mismatched collective detected", "nccl", "error", None),
        ("RuntimeError: [Rank 0]: Ranks 1 failed to pass monitoredBarrier in 30000 ms", "nccl", "error", None),
        (
            "[PG ID 2 PG GUID 9 Rank 4] Timeout at NCCL work: 610, last enqueued NCCL work: 616, last completed NCCL work: 609.",
            "nccl",
            "error",
            None,
        ),
        ("RuntimeError: Detected at least one rank that exhausted inputs. Throwing across all ranks.", "nccl", "error", None),
        ("INFO: task python:4242 blocked for more than 120 seconds.", "warning", "warning", None),
        ("nfs: server storage01 not responding, still trying", "warning", "warning", None),
        ("  rank      : 3 (local_rank: 3)", "warning", "warning", None),
        ("clocks throttle reasons: SW Thermal Slowdown active", "warning", "warning", None),
    ],
)
def test_event(text: str, kind: str, level: str, step: int | None) -> None:
    event = event_of(text)
    assert event is not None
    assert (event.kind, event.level, event.step) == (kind, level, step)


RULES = event_lines.data()["event"]
LISTS = {name: table for name, table in event_lines.data().items() if name != "event"}


@pytest.mark.parametrize("rule", RULES, ids=[f"{r['kind']}-{r['level']}" for r in RULES])
def test_each_pattern_matches_its_line_and_no_other_kinds_lines(rule: dict[str, Any]) -> None:
    for pattern, line in rule["patterns"].items():
        assert re.search(f"(?i){pattern}", line), pattern
        assert event_lines.hints(pattern), f"{pattern} needs no plain text"
        assert any(hint in line.lower() for hint in event_lines.needed())
        event = event_of(line)
        assert event is not None, line
        follows = rule["level"] == "error" and event_lines.known().cascade.search(line) is not None
        assert (event.kind, event.level) == (rule["kind"], "warning" if follows else rule["level"]), line
    for line in rule["never"]:
        assert not any(re.search(f"(?i){pattern}", line) for pattern in rule["patterns"]), line


@pytest.mark.parametrize("name", LISTS)
def test_each_pattern_of_a_list_matches_its_line(name: str) -> None:
    whole = getattr(event_lines.known(), name)
    assert LISTS.keys() == set(event_lines.Known._fields[1:])
    for pattern, line in LISTS[name]["patterns"].items():
        assert re.search(f"(?i){pattern}", line) and whole.search(line), pattern
    for line in LISTS[name]["never"]:
        assert not whole.search(line), line


def test_hints_are_texts_that_every_match_holds() -> None:
    assert event_lines.hints(r"(?:nan|inf)s? in (?:the )?(?:loss|grad)") == {"loss", "grad"}
    assert event_lines.hints(r"\bECC\b.{0,20}error") == {"error"}
    assert event_lines.hints(r"(?:un)?(?:lost)*x\d+") == set()


@pytest.mark.parametrize(
    "text",
    [
        "step 10 loss 2.3",
        "frame #4: c10d::TCPStore::check(...)",
        "Loading dataset shards: 100%",
        "the weather is nice",
        "HTTP Request: HEAD https://example.com/checkpoint/resume",
        "No Grad overflow for 100 iterations",
        "RuntimeError: the failure might be caused by an earlier one",
    ],
)
def test_chatter_is_no_event(text: str) -> None:
    assert event_of(text) is None


@pytest.mark.parametrize(
    ("text", "scale"),
    [
        ("Attempted loss scale: 65536, reducing to 32768", 32768.0),
        ("Attempted loss scale: 65536, but hysteresis is 2.", 65536.0),
        ("step 15: non-finite gradients, step skipped, loss scale 65536 -> 3.2768e+04", 32768.0),
        ("Reducing dynamic loss scale from 64.0 to 32.0", 32.0),
        ("Increasing dynamic loss scale from 64.0 to 128.0", 128.0),
        ("Skipping step, loss scaler 0 reducing loss scale to 0.5", 0.5),
        ("Grad overflow on iteration 3", None),
    ],
)
def test_loss_scale(text: str, scale: float | None) -> None:
    assert loss_scale(text) == scale


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("it 20 non-finite gradient, update skipped (20 so far)", 20.0),
        ("overflow, skipping step: 3 in total", 3.0),
        ("skipped 3 batches so far in the warmup", None),
        ("update skipped (2 retries)", None),
        ("20 samples seen so far", None),
    ],
)
def test_updates_that_were_skipped_so_far(text: str, count: float | None) -> None:
    assert skipped(text) == count


def test_when() -> None:
    assert when("*** JOB 1 ON n CANCELLED AT 2026-03-04T05:06:07 DUE TO TIME LIMIT ***") == "2026-03-04T05:06:07"
    assert when("nothing") is None


def collect(text: str) -> Event:
    traceback = Traceback(Where(5 << 20))
    for line in text.splitlines():
        if not traceback.feed(line):
            break
    return traceback.event()


def test_traceback_is_its_last_line_and_innermost_frame() -> None:
    event = collect(
        '  File "train.py", line 3, in <module>\n    main()\n  File "model.py", line 9, in main\n    x = y[7]\n'
        "        ~^^^\nIndexError: list index out of range\nstep 4 loss 2.0"
    )
    assert event == Event("traceback", "error", "IndexError: list index out of range  [model.py:9 in main]")


@pytest.mark.parametrize(
    ("last", "kind", "level"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory.", "oom", "error"),
        ("KeyboardInterrupt", "signal", "error"),
        ("RuntimeError: Function 'PowBackward0' returned nan values in its 0th output.", "nonfinite", "error"),
        ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", "traceback", "warning"),
    ],
)
def test_traceback_kind_follows_its_last_line(last: str, kind: str, level: str) -> None:
    event = collect(f'  File "a.py", line 1, in f\n    g()\n{last}')
    assert (event.kind, event.level) == (kind, level)


def test_cut_traceback_keeps_its_frame() -> None:
    assert "a.py:1 in f" in collect('  File "a.py", line 1, in f\n    g()').text


def test_code() -> None:
    source = [
        "import torch",
        "class Model(nn.Module):",
        "    def forward(self, x):",
        "        return self.head(x)",
        "        self.lr = 0.1",
        "    loss = model(x, y)",
        "for step in range(10):",
        'parser.add_argument("--lr", default=1)',
    ]
    assert all(is_code(s, sure=True) for s in source)
    assert is_code('    print0(f"step:{step} loss:{loss}")')
    logs = ["step 10 | loss 2.3", "from step 10 on", "lr=0.1 wd=0.2", "Epoch 3/10", "return code 1", "loss = 2.3"]
    assert not any(is_code(s, sure=True) for s in logs)


def test_argument_dumps() -> None:
    assert printed_settings.BLOCK.match("------------------------ arguments ------------------------")
    end = printed_settings.BLOCK.match("-------------------- end of arguments ---------------------")
    assert end is not None
    assert end["end"]
    assert printed_settings.dotted("  lr .............................. 0.003", True) == ("lr", 0.003)
    assert printed_settings.dotted("  batch_size ...................... 64..........................updated", True) == ("batch_size", 64)
    assert printed_settings.dotted("  a_key_as_long_as_its_column  True......................default", True) == (
        "a_key_as_long_as_its_column",
        True,
    )
    assert printed_settings.dotted(
        "[2026-03-04 05:06:07,008] [INFO] [config.py:1003:print]   train_batch_size ............. 32", False
    ) == ("train_batch_size", 32)
    assert printed_settings.dotted("waiting ........ done", False) is None


def test_namespace() -> None:
    text = "INFO | Namespace(lr=1e-4, betas=[0.9, 0.95], name='a, b', fp16=False, save=None)"
    assert dict(printed_settings.namespace(text)) == {"lr": 1e-4, "betas": "[0.9, 0.95]", "name": "a, b", "fp16": False, "save": None}
    assert list(printed_settings.namespace("Conv2d(3, 64, kernel_size=7)")) == []


@pytest.mark.parametrize(
    ("text", "indented", "pairs"),
    [
        ("train_batch_tokens:524288 iterations:2000 seed:7", False, [("train_batch_tokens", 524288), ("iterations", 2000), ("seed", 7)]),
        ("Vocab size: 32,768", False, [("Vocab size", 32768)]),
        ("X_train: mean=15.5 std=81.2 min=-3", False, [("X_train.mean", 15.5), ("X_train.std", 81.2), ("X_train.min", -3)]),
        ("features mean -1.5, std 81.2", False, [("features.mean", -1.5), ("features.std", 81.2)]),
        ("inputs mean/std = 15.5 / 81.2", False, [("inputs.mean", 15.5), ("inputs.std", 81.2)]),
        ("data_dir: /data/x", False, []),
        ("  data_dir: /data/x", True, [("data_dir", "/data/x")]),
        ("see https://example.com", False, []),
        ("    lr=args.lr,", False, []),
        ("hello world", False, []),
    ],
)
def test_header(text: str, indented: bool, pairs: list[tuple[str, object]]) -> None:
    assert printed_settings.header(text, indented) == pairs


def test_traceback_names_the_frame_that_says_what_the_program_was_doing() -> None:
    t = Traceback(Where(1))
    for line in [
        '  File "a.py", line 1, in main',
        '  File "a.py", line 7, in evaluate',
        '  File "m.py", line 9, in forward',
        "torch.OutOfMemoryError: CUDA out of memory.",
    ]:
        assert t.feed(line)
    assert t.event() == Event(
        "oom", "error", "torch.OutOfMemoryError: CUDA out of memory.  [m.py:9 in forward, called from a.py:7 in evaluate]"
    )


@pytest.mark.parametrize(
    ("quoted", "last"),
    [
        ('    path = save_checkpoint(model, step=step, \nfilename="out.pt")\n', "TypeError: save_checkpoint() got an unexpected argument"),
        (
            "    path = save_checkpoint(model,\n",
            "TypeError: save_checkpoint() got an unexpected argument",
        ),  # the statement goes on, unquoted
        ("    path = save_checkpoint(model)\nstep 4 loss 2.0\n", None),  # nothing is open: another process wrote
    ],
)
def test_a_quoted_line_that_a_window_wrapped_does_not_end_a_traceback(quoted: str, last: str | None) -> None:
    event = collect(f'  File "train.py", line 3, in <module>\n{quoted}TypeError: save_checkpoint() got an unexpected argument')
    assert event is not None and event.text == f"{last or 'traceback without its last line'}  [train.py:3 in <module>]"


def test_what_the_allocator_of_tensorflow_lists_is_no_measurement(tmp_path: Path) -> None:
    front = "2022-03-18 00:07:38.94450{i}: I tensorflow/core/common_runtime/bfc_allocator.cc:998] "
    lines = [
        f"{front.format(i=i)}Bin ({2 ** (20 + i)}): \tTotal Chunks: {i}, Chunks in use: 1. {325.29 - i}MiB allocated for chunks.\n"
        for i in range(9)
    ]
    (tmp_path / "train.log").write_text("".join(f"step {i} loss {2 - i / 10:.3f}\n" for i in range(9)) + "".join(lines))
    assert set(parsers.read(tmp_path).tables["metrics"]["step"].to_pylist()) == set(range(9))
