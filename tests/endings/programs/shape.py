"""Another width of the features at the first evaluation."""

import torch
from lib import endless, make_model, say, train


def evaluate(model):
    model.eval()
    with torch.no_grad():
        return model(torch.randn(64, 48)).mean()


def every_400(step):
    if step % 400 == 0:
        say(f"running evaluation at step {step}")
        evaluate(model)


say("config: steps=2000 batch_size=64 lr=0.003 optimizer=adamw eval_every=400")
model = make_model()
train(model, endless(), 2000, after=every_400)
