"""A damaged line in the data, met in a DataLoader worker."""

import json

import torch
from lib import make_model, say, toy_batch, train


class Lines(torch.utils.data.IterableDataset):
    def __iter__(self):
        worker = torch.utils.data.get_worker_info().id
        generator = torch.Generator().manual_seed(worker)
        for number in range(10_000):
            line = '{"text": "it was a bright cold day", "label": 3}'
            if worker == 1 and number == 231:
                line = '{"text": "it was a bri'
            json.loads(line)
            yield toy_batch(generator=generator)


if __name__ == "__main__":
    say("config: steps=3000 batch_size=64 num_workers=2 lr=0.003 data=shard-00[0-7].jsonl")
    train(make_model(), torch.utils.data.DataLoader(Lines(), batch_size=None, num_workers=2), 3000)
