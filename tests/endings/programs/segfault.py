"""A native extension reads where it may not."""

import ctypes
import faulthandler

from lib import endless, make_model, say, train

faulthandler.enable()


def decode_native(address):
    return ctypes.string_at(address)


def loader(step):
    if step == 730:
        decode_native(8)


say("config: steps=2000 batch_size=64 lr=0.003 decoder=native")
train(make_model(), endless(), 2000, after=loader)
