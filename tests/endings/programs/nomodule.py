"""A module that is not installed, imported where the model is built."""

from lib import endless, say, train


def build():
    from flash_attn_interface import flash_attn_func

    return flash_attn_func


say("config: steps=20000 batch_size=64 lr=0.0003 attention=flash3 precision=bf16")
say("building model")
train(build(), endless(), 20000)
