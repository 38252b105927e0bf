"""An optional import fails, is printed with its traceback, and the run goes on to its end."""

import traceback

from lib import endless, make_model, say, train

say("config: steps=900 batch_size=64 lr=0.003")
try:
    import apex_fused_layers

    apex_fused_layers.enable()
except ImportError:
    traceback.print_exc()
    say("fused layers not available, falling back to the native implementation")
train(make_model(), endless(), 900)
say("Training finished after 900 steps. Best loss written to best.json")
