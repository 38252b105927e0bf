"""metrics.jsonl and a file of stderr."""

import json

from endings_kit import FOLDERS, SITES, milli, points, staged, start_of, trace, write
from endings_words import cuda_memory

LOGGER = "JSONL + stderr"


def lines_of(rows, grow=None):
    """Records of the rows; `grow`: a factor on the loss from a step on."""
    out = []
    for step, time, loss, lr, norm in rows:
        factor = grow(step) if grow else 1.0
        out.append(
            json.dumps(
                {
                    "step": step,
                    "ts": round(time, 2),
                    "train_loss": round(loss * factor, 5),
                    "lr": lr,
                    "grad_norm": round(norm * factor**2, 4),
                }
            )
        )
    return out


def run(folder, rng, steps, total=9000, grow=None):
    start = start_of(rng)
    rows = points(rng, steps, 10, 0.62, start, first=9.1, floor=2.6)
    write(
        folder,
        "config.json",
        json.dumps({"max_steps": total, "batch_size": 64, "lr": 3e-4, "optimizer": "adamw", "model": "t5-small"}, indent=2),
    )
    return rows, lines_of(rows, grow)


@staged(LOGGER)
def jsonl_cut(folder, rng):
    """The last record is half a record; stderr holds a warning of the start only."""
    rows, lines = run(folder, rng, 4370)
    write(folder, "metrics.jsonl", "\n".join(lines)[:-31])
    warning = f"{rng.choice(SITES)}/torch/nn/modules/transformer.py:382: UserWarning: enable_nested_tensor is True, but self.use_nested_tensor is False\n  warnings.warn("
    write(folder, "stderr.log", [warning])
    return rows[-1][1]


@staged(LOGGER)
def jsonl_cuda_oom(folder, rng):
    rows, lines = run(folder, rng, 2150)
    root = rng.choice(FOLDERS)
    calls = [(f"{root}/run.py", 155, "<module>", "main()"), (f"{root}/run.py", 122, "main", "loss.backward()")]
    write(folder, "metrics.jsonl", lines)
    write(folder, "stderr.txt", trace(calls, cuda_memory(rng, other=False)))
    return rows[-1][1] + 2


@staged(LOGGER)
def jsonl_diverged_ctrl_c(folder, rng):
    """The loss has left for good; after a while its owner presses Ctrl-C."""
    rows, lines = run(folder, rng, 5600, grow=lambda step: 1.0 if step < 4000 else min(3.4, 1.0 + (step - 4000) / 250))
    root = rng.choice(FOLDERS)
    calls = [
        (f"{root}/run.py", 155, "<module>", "main()"), (f"{root}/run.py", 127, "main", "optimizer.step()"),
        (f"{rng.choice(SITES)}/torch/optim/adamw.py", 232, "step", "adamw("),
    ]  # fmt: skip
    write(folder, "metrics.jsonl", lines)
    write(folder, "stderr.log", ["^C" + line if n == 0 else line for n, line in enumerate(trace(calls, "KeyboardInterrupt"))])
    return rows[-1][1] + 3


@staged(LOGGER)
def jsonl_finished_event(folder, rng):
    """The last record says that training ended; no other word."""
    rows, lines = run(folder, rng, 9000)
    lines.insert(0, json.dumps({"event": "train_start", "ts": round(rows[0][1] - 9, 2), "max_steps": 9000}))
    lines.append(json.dumps({"event": "train_end", "ts": round(rows[-1][1] + 1, 2), "step": 9000, "status": "completed"}))
    write(folder, "metrics.jsonl", lines)
    write(folder, "stderr.log", [f"{milli(rows[0][1] - 8)} INFO data: 18,204,117 rows"])
    return rows[-1][1] + 1
