"""KeyError in user code while another one is being handled."""

from lib import endless, make_model, say, train

WEIGHTS = {"cat": 1.0, "dog": 1.0, "bird": 2.5}
RENAMED = {"kitten": "cat", "puppy": "dog"}


def class_weight(label):
    try:
        return WEIGHTS[label]
    except KeyError:
        return WEIGHTS[RENAMED.get(label, "other")]


def reweight(step):
    if step % 50 == 0:
        class_weight("kitten" if step < 640 else "hamster")


say("config: steps=1500 batch_size=64 lr=0.003 optimizer=adamw seed=0 device=cuda:0")
say("model: 2826 parameters")
train(make_model(), endless(), 1500, after=reweight)
