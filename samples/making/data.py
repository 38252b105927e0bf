"""Generated data with something to learn in it: a text with words and grammar, and clusters on curved sheets.

A task is a set of numbered samples kept in numbered shards, a held-out set and a loss: what a batch manifest speaks of.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

LETTERS = " .,\nabcdefghijklmnopqrstuvwxyz"


@dataclass
class Task:
    """``inputs[i]``, ``targets[i]`` are sample i; it lies in shard ``i // shard_size``."""

    inputs: Tensor
    targets: Tensor
    held_out: tuple[Tensor, Tensor]
    loss: Callable[[nn.Module, Tensor, Tensor], Tensor]
    shard_size: int
    shard_name: str = "shard-{:03d}"
    unit: int = 1  # tokens a sample

    def __len__(self) -> int:
        return len(self.inputs)

    def shard(self, sample: int) -> str:
        return self.shard_name.format(sample // self.shard_size)


def cross_entropy(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    """Mean negative log likelihood in nats (per token, for text); targets of -100 are ignored."""
    scores = model(inputs).float()
    return functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), targets.reshape(-1), ignore_index=-100)


def text(seed: int, length: int, noise: float = 0.0) -> str:
    """Sentences of invented words: each word has a few likely successors, so that there is grammar to find.

    ``noise``: the share of characters that are replaced by any letter.
    """
    rng = random.Random(seed)
    syllables = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
    words = ["".join(rng.choices(syllables, k=rng.choice((1, 2, 2, 3)))) for _ in range(160)]
    rank = [1 / (i + 2) for i in range(len(words))]  # Zipf's law
    follows = {word: rng.choices(words, rank, k=6) for word in words}
    parts: list[str] = []
    word, size = words[0], 0
    while size < length:
        word = rng.choices(follows[word], (8, 5, 3, 2, 1, 1))[0]
        stop = rng.choices((" ", ", ", ". ", ".\n"), (12, 2, 2, 1))[0]
        parts.append(word + stop)
        size += len(word) + len(stop)
    clean = "".join(parts)[:length]
    return "".join(rng.choice(LETTERS) if rng.random() < noise else c for c in clean) if noise else clean


def encode(characters: str) -> Tensor:
    return torch.tensor([LETTERS.index(c) for c in characters])


def language(seed: int = 1, samples: int = 6000, context: int = 32, shard_size: int = 256, noise: float = 0.0) -> Task:
    """Next-character prediction over windows of one text; the last 128 windows are held out."""
    codes = encode(text(seed, (samples + 128) * context + 1, noise))
    inputs, targets = codes[:-1].view(-1, context), codes[1:].view(-1, context)
    held_out = (inputs[samples:], targets[samples:])
    return Task(inputs[:samples], targets[:samples], held_out, cross_entropy, shard_size, unit=context)


def clusters(seed: int = 1, samples: int = 8000, classes: int = 10, width: int = 16, spread: float = 0.55, held_out: int = 1000) -> Task:
    """Classification of points around bent lines; ``spread`` sets how far the classes overlap."""
    generator = torch.Generator().manual_seed(seed)
    total = samples + held_out
    centres = torch.randn(classes, 4, width, generator=generator)
    labels = torch.randint(classes, (total,), generator=generator)
    along = torch.rand(total, 1, generator=generator) * 3
    part = along.long().squeeze(1)
    mix = along - part[:, None]
    points = (1 - mix) * centres[labels, part] + mix * centres[labels, part + 1]
    points = points + spread * torch.randn(total, width, generator=generator)
    rest = (points[samples:], labels[samples:])
    return Task(points[:samples], labels[:samples], rest, cross_entropy, 500, "part-{:03d}")
