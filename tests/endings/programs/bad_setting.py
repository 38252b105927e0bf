"""An assertion about the settings, before the first step."""

from lib import endless, make_model, say, train

HEADS, WIDTH = 12, 1000


def check():
    assert WIDTH % HEADS == 0, f"hidden size {WIDTH} is not divisible by {HEADS} heads"


say("config: steps=30000 batch_size=256 lr=0.0006 heads=12 width=1000")
check()
train(make_model(), endless(), 30000)
