"""torch.compile fails in the first step: the machine has no C++ compiler."""

import torch
from lib import endless, make_model, say, train

say("config: steps=5000 batch_size=64 lr=0.003 compile=True")
model = torch.compile(make_model())
say("model compiled, starting training")
train(model, endless(), 5000)
