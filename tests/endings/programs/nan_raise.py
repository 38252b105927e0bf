"""The rate is far too high; the loss leaves, and the program raises when it is not finite."""

import math

import torch
from lib import CLOCK, make_model, record, say, toy_batch

model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
say("config: steps=1500 batch_size=64 lr=0.05 optimizer=sgd clip=none")
for step in range(1, 1501):
    for group in optimizer.param_groups:
        group["lr"] = 0.05 if step < 400 else 0.05 * 1.06 ** (step - 400)
    x, y = toy_batch()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    CLOCK.tick()
    if step % 10 == 0:
        record(step, 1500, loss=loss.item(), lr=optimizer.param_groups[0]["lr"])
    if not math.isfinite(loss.item()):
        raise FloatingPointError(f"loss is {loss.item()} at step {step}, stopping training")
