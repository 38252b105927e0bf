"""Plain consoles, sometimes with the kernel's log: CUDA, memory, disk, a log that breaks off, a run that still runs, finished runs."""

import time as clock

from endings_kit import (
    FOLDERS,
    SITES,
    curve,
    epoch_lines,
    iter_lines,
    megatron_lines,
    milli,
    plain_lines,
    points,
    staged,
    stamp,
    start_of,
    trace,
    write,
)
from endings_words import CUDA_HINT, cuda_memory, kernel_oom, kernel_xid


def header(rng, start, total, **settings):
    said = " ".join(f"{key}={value}" for key, value in settings.items())
    return [
        f"{milli(start)} - INFO - args: max_steps={total} seed={rng.randrange(100)} {said}",
        f"{milli(start + 4)} - INFO - device cuda:0 (NVIDIA A100-SXM4-80GB)",
    ]


def forward(rng, root, line, source):
    """The frames of a training step down to a library's line."""
    site = rng.choice(SITES)
    return [
        (f"{root}/train.py", rng.randrange(180, 320), "<module>", "main(parse_args())"),
        (f"{root}/train.py", rng.randrange(90, 170), "main", "loss = step(model, batch)"),
        (f"{root}/train.py", rng.randrange(40, 80), "step", "logits = model(batch['input_ids'])"),
        (f"{site}/torch/nn/modules/module.py", 1751, "_wrapped_call_impl", "return self._call_impl(*args, **kwargs)"),
        (f"{site}/torch/nn/modules/module.py", 1762, "_call_impl", "return forward_call(*args, **kwargs)"),
        (f"{site}/{line[0]}", line[1], line[2], source),
    ]


def console_cuda(folder, rng, error, name="train.log"):
    start, root, total = start_of(rng), rng.choice(FOLDERS), 20000
    steps = rng.randrange(150, 400) * 20
    rows = points(rng, steps, 20, 0.31, start)
    calls = forward(rng, root, ("torch/nn/functional.py", 2546, "linear"), "return torch._C._nn.linear(input, weight, bias)")
    write(
        folder, name, header(rng, start, total, batch_size=32, lr="3e-4", model="gpt-350m") + plain_lines(rows, total) + trace(calls, error)
    )
    return rows[-1][1] + 4


@staged("console")
def console_cuda_oom_own(folder, rng):
    return console_cuda(folder, rng, cuda_memory(rng, other=False))


@staged("console")
def console_cuda_oom_other(folder, rng):
    return console_cuda(folder, rng, cuda_memory(rng, other=True), "log.txt")


@staged("console")
def console_device_assert(folder, rng):
    start, root, total = start_of(rng), rng.choice(FOLDERS), 40000
    rows = points(rng, rng.randrange(300, 900) * 10, 10, 0.12, start, first=4.6, floor=1.4)
    thread = sorted(rng.sample(range(32), 4))
    kernel = "/pytorch/aten/src/ATen/native/cuda/Loss.cu:245: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [{},0,0] "
    asserts = [kernel.format(number) + "Assertion `t >= 0 && t < n_classes` failed." for number in thread]
    calls = [(f"{root}/main.py", 212, "<module>", "fit(args)"), (f"{root}/main.py", 164, "fit", "running += loss.item()")]
    error = "torch.AcceleratorError: CUDA error: device-side assert triggered\n" + CUDA_HINT
    write(
        folder, "train.log", header(rng, start, total, num_classes=100, lr=0.001) + plain_lines(rows, total) + asserts + trace(calls, error)
    )
    return rows[-1][1] + 2


@staged("console + dmesg")
def console_dmesg_oom(folder, rng):
    """The process is killed without a word of its own; the kernel's log beside it names it."""
    start, total = start_of(rng), 30000
    rows = points(rng, rng.randrange(200, 500) * 25, 25, 0.22, start)
    pid = rng.randrange(10000, 90000)
    text = [f"{milli(start)} - INFO - pid {pid} host node-a17", *header(rng, start, total, batch_size=64), *plain_lines(rows, total)]
    write(folder, "train.log", [*text, f"run.sh: line 9: {pid} Killed                  python train.py --config base.yaml"])
    write(folder, "dmesg.txt", kernel_oom(rng, pid, rows[-1][1] + 3))
    return rows[-1][1] + 5


@staged("console + dmesg")
def console_xid_fallen_off(folder, rng):
    start, root, total = start_of(rng), rng.choice(FOLDERS), 25000
    rows = points(rng, rng.randrange(200, 500) * 20, 20, 0.4, start)
    calls = [(f"{root}/pretrain.py", 301, "<module>", "main()"), (f"{root}/pretrain.py", 255, "main", "torch.cuda.synchronize()")]
    calls.append((f"{rng.choice(SITES)}/torch/cuda/__init__.py", 1040, "synchronize", "return torch._C._cuda_synchronize()"))
    error = "RuntimeError: CUDA error: unspecified launch failure\n" + CUDA_HINT
    write(folder, "train.log", header(rng, start, total, batch_size=256) + plain_lines(rows, total) + trace(calls, error))
    write(folder, "dmesg.log", kernel_xid(rng, 79, rows[-1][1] + 1))
    return rows[-1][1] + 6


@staged("console")
def console_ecc(folder, rng):
    error = "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n" + CUDA_HINT
    return console_cuda(folder, rng, error, "stdout.log")


@staged("console + dmesg")
def console_silent_xid(folder, rng):
    """The log just ends; only the kernel's log tells of the memory that failed."""
    start = start_of(rng)
    rows = points(rng, rng.randrange(400, 700) * 10, 10, 0.35, start)
    write(folder, "out.log", [f"{stamp(start)} tokens per iter: 491,520; max_iters = 60000", *iter_lines(rows, 0.35)])
    write(folder, "dmesg.txt", kernel_xid(rng, 48, rows[-1][1] + 1))
    return rows[-1][1] + 60


@staged("console")
def console_quota(folder, rng):
    start, root = start_of(rng), rng.choice(FOLDERS)
    lines, time = epoch_lines(rng, 23, 60, start)
    calls = [
        (f"{root}/train.py", 141, "<module>", "main()"),
        (f"{root}/train.py", 118, "main", "shutil.copyfile('last.pth', f'epoch_{epoch}.pth')"),
        ("/opt/conda/lib/python3.11/shutil.py", 258, "copyfile", "with open(dst, 'wb') as fdst:"),
    ]
    lines.append(f"{milli(time + 1)} saving epoch_23.pth")
    error = "OSError: [Errno 122] Disk quota exceeded: 'epoch_23.pth'"
    write(folder, "train.log", [f"{milli(start)} Namespace(epochs=60, batch_size=128, lr=0.001)", *lines, *trace(calls, error)])
    return time + 3


@staged("console")
def console_cut_midline(folder, rng):
    start, total = start_of(rng), 100000
    rows = points(rng, 6200, 20, 2.4, start)
    text = "\n".join(megatron_lines(rows, total, 2.4))
    write(folder, "pretrain.log", text[: -rng.randrange(150, 220)])
    return rows[-1][1]


@staged("console")
def console_running(folder, rng):
    """The last line is a few seconds old."""
    rows = points(rng, 5200, 20, 0.5, 0.0)
    now = clock.time() - 4
    rows = [(step, time - rows[-1][1] + now, *rest) for step, time, *rest in rows]
    write(folder, "train.log", header(rng, rows[0][1] - 12, 20000, batch_size=32, lr="3e-4") + plain_lines(rows, 20000))
    return now


@staged("console")
def console_plan_reached(folder, rng):
    """All epochs done, no closing word."""
    start = start_of(rng)
    lines, time = epoch_lines(rng, 40, 40, start)
    write(folder, "train.log", [f"{milli(start)} Namespace(epochs=40, batch_size=128, lr=0.001, model='resnet18')", *lines])
    return time


@staged("console")
def console_closing_line(folder, rng):
    start, total = start_of(rng), 12000
    rows = points(rng, total, 20, 0.21, start)
    end = rows[-1][1]
    closing = f"{milli(end + 9)} - INFO - Training complete in {int((end - start) // 60)}m {int((end - start) % 60)}s. Final loss {rows[-1][2]:.4f}"
    saved = f"{milli(end + 8)} - INFO - saved final checkpoint to checkpoints/final.pt"
    write(folder, "train.log", [*header(rng, start, total, batch_size=32), *plain_lines(rows, total), saved, closing])
    return end + 9


@staged("console")
def console_early_stop(folder, rng):
    start = start_of(rng)
    lines, time = epoch_lines(rng, 31, 100, start)
    lines.append(
        f"{milli(time + 1)} Early stopping triggered after 31 epochs: val_loss did not improve by 0.0100 for 5 epochs. Best epoch: 26"
    )
    write(folder, "train.log", [f"{milli(start)} Namespace(epochs=100, patience=5, batch_size=128, lr=0.001)", *lines])
    return time + 1


@staged("console")
def console_finished_length_unknown(folder, rng):
    """No planned length anywhere; the program says that it is done."""
    start, time, lines = start_of(rng), 0.0, []
    for step, loss in enumerate(curve(rng, 260, 6.1, 1.9), start=1):
        time = start + step * 14.2
        lines.append(f"[{stamp(time)}] step={step * 50} train_loss={loss:.4f} tokens={step * 50 * 16384}")
    lines += [
        f"[{stamp(time + 2)}] data exhausted, one pass over the corpus done",
        f"[{stamp(time + 6)}] Done. Weights written to out/model_final.pt",
    ]
    write(folder, "log.txt", lines)
    return time + 6
