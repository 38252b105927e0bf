"""A DataLoader worker is killed by the system."""

import os
import signal

import torch
from lib import make_model, say, toy_batch, train


class Images(torch.utils.data.IterableDataset):
    def __iter__(self):
        worker = torch.utils.data.get_worker_info().id
        generator = torch.Generator().manual_seed(worker)
        for number in range(10_000):
            if worker == 0 and number == 187:
                os.kill(os.getpid(), signal.SIGKILL)
            yield toy_batch(generator=generator)


if __name__ == "__main__":
    say("config: steps=3000 batch_size=64 num_workers=2 lr=0.003 data=imagenet-64")
    train(make_model(), torch.utils.data.DataLoader(Images(), batch_size=None, num_workers=2), 3000)
