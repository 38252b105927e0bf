"""The run finishes; the resource tracker complains at exit."""

from multiprocessing import shared_memory

from lib import endless, make_model, say, train

say("config: steps=700 batch_size=64 lr=0.003")
cache = shared_memory.SharedMemory(create=True, size=1024)
train(make_model(), endless(), 700)
say("done training, 700/700 steps")
