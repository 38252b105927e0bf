"""The host's memory does not suffice for a cache of the whole data set."""

import torch
from lib import endless, make_model, say, train


def build_cache(rows):
    return torch.empty(rows, 1 << 20)


def cache_at(step):
    if step == 310:
        say("building the feature cache")
        build_cache(1 << 22)


say("config: steps=1500 batch_size=64 lr=0.003 cache_features=True")
train(make_model(), endless(), 1500, after=cache_at)
