"""A label outside the table of names, in the evaluation; the shell's exit record is that of tee."""

from lib import endless, make_model, say, train

NAMES = ["airplane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship"]


def confusion(step):
    if step == 560:
        say("evaluating on val split (1000 batches)")
        worst = max(range(10), key=lambda k: k)
        say("worst class: " + NAMES[worst])


say("config: steps=1200 batch_size=64 lr=0.003")
train(make_model(), endless(), 1200, after=confusion)
