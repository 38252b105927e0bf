"""Logs that begin with the program that wrote them, as those of modded-nanogpt do: the program here is run as it stands."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

from making import files
from making.expect import Expect

PROGRAM = """import torch
from torch import nn

torch.manual_seed(103)
torch.set_num_threads(1)
steps = 250
print('optimizer: sgd, momentum: 0.9, batch_size: 32, schedule: constant')
centers = torch.randn(10, 16)
labels = torch.randint(0, 10, (8000,))
points = centers[labels] + 0.9 * torch.randn(8000, 16)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
for step in range(1, steps + 1):
    batch = torch.randint(0, 8000, (32,))
    loss = criterion(model(points[batch]), labels[batch])
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), float("inf"))
    optimizer.step()
    if step % 3 == 0:
        print(f"step {step}/{steps} loss {loss.item():.5g} grad_norm {norm.item():.5g} lr {optimizer.param_groups[0]['lr']:g}")
"""


def gradients_kept_listing(out: Path) -> Expect:
    """A program that never calls zero_grad prints itself and then its steps: the norm grows without end, the loss swings, and the
    line that steps the optimizer stands in the log. Console only, no clock."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(PROGRAM, "train.py", "exec"), {"__name__": "__main__"})  # the recipe's own text, as python train.py would run it
    files.lines(out / "train.log", [*PROGRAM.splitlines(), "=" * 100, *said.getvalue().splitlines()])
    return Expect(
        top="gradients_not_cleared",
        acceptable=["lr_too_high"],
        clear=["nonfinite", "restart", "lr_schedule"],
        findings=["suspect_source"],
        first_bad_step=1,
        emulated="nothing",
    )
