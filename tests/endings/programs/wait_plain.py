"""A plain loop that is ended from outside."""

import os

from lib import endless, make_model, prefetch, say, train

AT = int(os.environ.get("AT", "500"))
say("config: steps=2400 batch_size=64 lr=0.003 seed=3")


train(make_model(), endless(), 2400, after=lambda step: prefetch(step, AT))
