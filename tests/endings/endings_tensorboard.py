"""TensorBoard event files with a console beside them."""

import struct
from pathlib import Path

from endings_kit import FOLDERS, SITES, milli, points, staged, start_of, trace, write
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

LOGGER = "TensorBoard + console"


def events(folder, rows, host="gpu-node-3", cut=0):
    """An event file with the values of `rows`; `cut`: so many bytes of its end were never written."""
    begin = rows[0][1] - 20
    path = Path(folder) / f"events.out.tfevents.{int(begin)}.{host}.{struct.unpack('<H', struct.pack('<f', begin)[:2])[0]}.0"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as out:
        writer = RecordWriter(out)
        writer.write(Event(wall_time=begin, file_version="brain.Event:2").SerializeToString())
        for step, time, loss, lr, norm in rows:
            for tag, value in (("train/loss", loss), ("train/lr", lr), ("train/grad_norm", norm)):
                writer.write(
                    Event(
                        wall_time=time, step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)])
                    ).SerializeToString()
                )
        writer.flush()
    if cut:
        path.write_bytes(path.read_bytes()[:-cut])


def run(folder, rng, share, every=20, total=20000, cut=0):
    """A run up to `share` of its plan; returns rows and console lines."""
    start = start_of(rng)
    rows = points(rng, int(total * share) // every * every, every, 0.27, start, first=7.4, floor=2.1)
    events(folder / "tb", rows, cut=cut)
    lines = [
        f"{milli(start)} | INFO | Config(max_steps={total}, batch_size=48, lr=0.0003, logdir='tb')",
        f"{milli(start + 6)} | INFO | 124.4M parameters",
    ]
    for step, time, loss, _, _ in rows[4::5]:
        lines.append(f"{milli(time)} | INFO | step {step:6d} / {total} | loss {loss:.4f} | {every / 5.4:.2f} it/s")
    return rows[-1][1], lines


@staged(LOGGER)
def tensorboard_index_error(folder, rng):
    last, lines = run(folder, rng, 0.41)
    root = rng.choice(FOLDERS)
    calls = [
        (f"{root}/train.py", 204, "<module>", "main()"), (f"{root}/train.py", 171, "main", "for batch in loader:"),
        (f"{root}/data/packed.py", 66, "__getitem__", "return self.tokens[self.offsets[i] : self.offsets[i + 1]]"),
    ]  # fmt: skip
    error = "IndexError: index 918273 is out of bounds for axis 0 with size 918273"
    write(folder, "console.log", lines + trace(calls, error))
    return last + 1


@staged(LOGGER)
def tensorboard_finished(folder, rng):
    last, lines = run(folder, rng, 1.0)
    write(
        folder,
        "console.log",
        [*lines, f"{milli(last + 3)} | INFO | reached max_steps=20000, exiting training loop", f"{milli(last + 4)} | INFO | done"],
    )
    return last + 4


@staged(LOGGER)
def tensorboard_segfault(folder, rng):
    last, lines = run(folder, rng, 0.33)
    site = rng.choice(SITES)
    stack = [
        "Fatal Python error: Segmentation fault", "", f"Thread 0x00007f{rng.randrange(16**10):010x} (most recent call first):",
        f'  File "{site}/torch/utils/data/_utils/pin_memory.py", line 52 in do_one_step', f'  File "{site}/torch/utils/data/_utils/pin_memory.py", line 78 in _pin_memory_loop',
        '  File "/opt/conda/lib/python3.11/threading.py", line 982 in run', "", f"./launch.sh: line 14: {rng.randrange(9000, 90000)} Segmentation fault      (core dumped) python train.py",
    ]  # fmt: skip
    write(folder, "train.log", lines + stack)
    return last + 1


@staged(LOGGER)
def tensorboard_cut(folder, rng):
    """Event file and console both end in the middle of a record."""
    last, lines = run(folder, rng, 0.57, cut=11)
    write(folder, "console.log", "\n".join(lines)[:-23])
    return last


@staged(LOGGER)
def tensorboard_cuda_illegal_access(folder, rng):
    last, lines = run(folder, rng, 0.62)
    root = rng.choice(FOLDERS)
    calls = [(f"{root}/train.py", 231, "<module>", "main()"), (f"{root}/train.py", 188, "main", "scaler.step(optimizer)")]
    error = "RuntimeError: CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\n"
    abort = [
        "terminate called after throwing an instance of 'c10::Error'", "  what():  CUDA error: an illegal memory access was encountered",
        "Exception raised from c10_cuda_check_implementation at /pytorch/c10/cuda/CUDAException.cpp:43 (most recent call first):",
        f"Aborted (core dumped) python train.py --logdir {root}/tb",
    ]  # fmt: skip
    write(folder, "console.log", lines + trace(calls, error) + abort)
    return last + 2


@staged(LOGGER)
def tensorboard_running(folder, rng):
    """Both files were written to a moment ago."""
    import time as clock

    start = clock.time() - 4600 * 0.27 - 70
    rows = points(rng, 4600, 20, 0.27, start, first=7.4, floor=2.1)
    now = clock.time() - 3
    rows = [(step, time - rows[-1][1] + now, *rest) for step, time, *rest in rows]
    events(folder / "tb", rows)
    write(
        folder,
        "console.log",
        [f"{milli(t)} | INFO | step {step:6d} / 20000 | loss {loss:.4f} | 3.70 it/s" for step, t, loss, _, _ in rows[4::5]],
    )
    return now
