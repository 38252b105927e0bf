"""Small helpers of the kind a training project has; tracebacks in the runs may pass through them."""

import json
import time

import numpy as np


class SampleCache:
    """Keeps every decoded sample, as caches without a limit do."""

    def __init__(self):
        self.items = []

    def decode(self, i, size):
        sample = np.ones(size // 8)
        self.items.append(sample)
        return sample


def write_file(path, payload):
    with open(path, "w") as handle:
        handle.write(payload)
        handle.flush()


def read_meta(number):
    """Reads the record of a shard; the last part of a data set has records of many a form."""
    kind = number % 6
    if kind == 0:
        record = json.loads('{"label": 3, "file": "shard-%04d.bin"}' % number)
        return record["label"], record["weight"]
    if kind == 1:
        return json.loads('{"label": 3, "file": "shard-%04d.bin", "wei' % number)
    if kind == 2:
        return np.load("data/shard-%04d.npy" % number)
    if kind == 3:
        return np.concatenate([np.zeros((16, 20)), np.zeros((7, 21))])
    if kind == 4:
        names = ["train", "valid"]
        return names[number]
    value = None
    return value.shape[0]


def wait_for_shard(ready, seconds=10**6):
    while not ready.is_set():
        time.sleep(seconds)
