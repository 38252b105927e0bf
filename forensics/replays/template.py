"""The adapter that `forensics replay --init` writes: the contract, commented, to be filled in."""

TEXT = '''\
"""Replay adapter: how forensics runs steps of this training again. Only this file is run, in a process of its own.

    forensics replay RUN --adapter THIS_FILE.py [--python .venv/bin/python] [--device cuda]

For Trainer, Lightning and scripts like nanoGPT there are ready ones: --adapter hf, lightning, nanogpt (docs/replay.md).
Often your train.py is an adapter already: the names below at module level, safe to import (training under `if __name__ ==
"__main__"`). Everything must depend on `step` and the state alone: no global iterators, no unseeded random numbers.
"""

import torch

# PRECISION = "fp32"     # or "bf16", "fp16": the autocast of the default step; leave it where your train_step does it
# CLIP = 1.0             # gradient clipping of the default step
# MICRO_BATCH = 8        # rows that the default step takes at a time, where gradients are accumulated
# LAST_STEP = 5000       # no batch(step) from here on


def build():
    """-> (model, optimizer) or (model, optimizer, scheduler) as at step 0, on the CPU, seeded."""
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return model, optimizer


def batch(step):
    """-> exactly the batch of the step-th optimizer step, counted as your training counts (the first is 0).

    A tensor, or tuples, lists or dicts of tensors, dimension 0 the sample; "ids" in a dict names the samples. With gradient
    accumulation: all micro-batches of the step.
    """
    g = torch.Generator().manual_seed(step)
    x = torch.randn(32, 8, generator=g)
    return {"x": x, "y": x.sum(1), "ids": torch.arange(32) + 32 * step}


def loss(model, batch, reduction="mean"):
    """-> a scalar; with reduction="none" one loss a sample (without it samples are looked at one by one)."""
    rows = (model(batch["x"])[:, 0] - batch["y"]) ** 2
    return rows if reduction == "none" else rows.mean()


# Where the run recorded which samples each step had (forensics.record), in place of batch(step):
# def dataset():
#     """-> anything with [i]; the samples of a step are taken in the recorded order."""
# def collate(rows):
#     """-> the batch of these rows; default: that of a DataLoader."""

# Where one step is more than zero_grad, loss, backward, clip by CLIP, optimizer.step, scheduler.step:
# def train_step(model, optimizer, scheduler, batch):
#     """One whole optimizer step -> loss, or (loss, gradient norm before clipping)."""

# Where checkpoints are not {"model", "optimizer", "scheduler", "step", "rng"}, Hugging Face, Lightning or safetensors:
# def load(path, model, optimizer, scheduler):
#     """Loads everything -> the step to go on with."""

# def checkpoints():
#     """-> [(step, path)]; default: those found in the run."""

# def select(batch, indices):
#     """-> the batch with these rows only; default: dimension 0 of every tensor of the batch's length."""

# def sample_ids(step):
#     """-> names of the rows of that batch; default: batch["ids"]."""
'''
