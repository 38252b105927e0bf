"""What the stagers share: the register of endings, a clock, loss curves, lines of several consoles, files with their times."""

import datetime
import math
import os
import random
import re

STAGERS = {}
FOLDERS = ["/home/ines/whale", "/data/teams/speech/asr", "/scratch/kh41/lmpre", "/mnt/nvme1/work/segnet", "/workspace/recsys"]
SITES = [
    "/opt/conda/lib/python3.11/site-packages",
    "/home/ines/miniconda3/envs/tr/lib/python3.11/site-packages",
    "/usr/local/lib/python3.11/dist-packages",
]


def staged(logger, name=None):
    """Registers a function `stage(folder, rng) -> time of the last line` under its own name."""

    def keep(function):
        STAGERS[name or function.__name__] = (logger, function)
        return function

    return keep


def start_of(rng):
    """A start in the half year before the recordings."""
    day = datetime.datetime(2026, 4, 1) + datetime.timedelta(days=rng.randrange(180), seconds=rng.randrange(86400))
    return day.timestamp()


def stamp(time, fmt="%Y-%m-%d %H:%M:%S"):
    return datetime.datetime.fromtimestamp(time).strftime(fmt)


def milli(time):
    return stamp(time) + f",{int(time % 1 * 1000):03d}"


def curve(rng, count, first=10.8, floor=2.9, noise=0.012):
    """A calm loss: a power law with a little relative noise."""
    scale = count / 60
    return [(floor + (first - floor) * (1 + step / scale) ** -0.75) * math.exp(rng.gauss(0, noise)) for step in range(count)]


def points(rng, steps, every, pace, start, **shape):
    """(step, time, loss, lr, grad norm) of every logged step of a calm run."""
    logged = list(range(every, steps + 1, every))
    time = start + rng.uniform(20, 60)
    rows = []
    for step, loss in zip(logged, curve(rng, len(logged), **shape), strict=True):
        time += pace * every * rng.uniform(0.985, 1.02)
        lr = 3e-4 * min(1.0, step / 200) * (0.55 + 0.45 * math.cos(math.pi * step / 60000))
        rows.append((step, time, loss, lr, abs(rng.gauss(0.62, 0.07))))
    return rows


def plain_lines(rows, total):
    return [f"{milli(t)} - INFO - step {s}/{total} loss={loss:.4f} lr={lr:.3e} grad_norm={norm:.3f}" for s, t, loss, lr, norm in rows]


def iter_lines(rows, pace):
    return [
        f"iter {s}: loss {loss:.4f}, time {pace * 1000 * (1 + (norm - 0.62) / 9):.2f}ms, mfu {38.4 + norm:.2f}%"
        for s, _, loss, _, norm in rows
    ]


def megatron_lines(rows, total, pace, batch=512):
    """Megatron's console; the last rank prints it."""
    return [
        f" [{stamp(t)}] iteration {s:8d}/{total:8d} | consumed samples: {s * batch:12d} | elapsed time per iteration (ms): {pace * 1000 + norm * 9:.1f} | "
        f"learning rate: {lr:.6E} | global batch size: {batch:5d} | lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: {norm:.3f} | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |"
        for s, t, loss, lr, norm in rows
    ]


def epoch_lines(rng, epochs, total, start, minutes=4.0):
    """A line for every epoch of an image classifier, and the time of the last one."""
    lines, time = [], start + 15
    for epoch, loss in enumerate(curve(rng, epochs, 2.31, 0.41, 0.01), start=1):
        time += minutes * 60 * rng.uniform(0.99, 1.02)
        accuracy = 100 * (1 - 0.36 * loss)
        lines.append(
            f"{milli(time)} Epoch [{epoch}/{total}] train_loss: {loss:.4f} val_loss: {loss * 1.06 + 0.04:.4f} val_acc: {accuracy:.2f}% lr: 0.0010"
        )
    return lines, time


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(("\n".join(text) + "\n" if isinstance(text, list) else text).encode())


def settle_times(folder, last):
    """Files are as old as the run: copies of a run keep the times of its files."""
    for path in folder.rglob("*"):
        os.utime(path, (last, last))


def trace(calls, error, prefix=""):
    """A traceback as Python prints it; calls: (file, line, function, source)."""
    lines = ["Traceback (most recent call last):"]
    for path, line, function, source in calls:
        lines += [f'  File "{path}", line {line}, in {function}', f"    {source}"]
    return [prefix + line for line in [*lines, *error.split("\n")]]


def moved_text(text, shift, root):
    """A recorded text at another time and in another folder."""

    def later(match):
        moment = datetime.datetime.fromisoformat(match[1] + " " + match[3]) + datetime.timedelta(seconds=shift)
        return moment.strftime(f"%Y-%m-%d{match[2]}%H:%M:%S")

    text = re.sub(r"(2026-03-0\d)([ T_])(\d\d:\d\d:\d\d)", later, text)
    text = re.sub(r'("time": )(1772\d+\.\d+)', lambda m: f"{m[1]}{float(m[2]) + shift:.3f}", text)
    return text.replace("/opt/train/proj", root).replace("/opt/train/", root.rsplit("/", 1)[0] + "/.local/")


def rng_of(name, seed):
    return random.Random(f"endings/{name}/{seed}")
