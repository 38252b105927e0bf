"""Three small models, of the families whose failures differ: a perceptron, a recurrent net, a transformer."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from making.data import LETTERS


def squared_relu(x: Tensor) -> Tensor:
    return functional.relu(x).square()


class Perceptron(nn.Module):
    def __init__(
        self,
        inputs: int = 16,
        width: int = 64,
        classes: int = 10,
        layers: int = 2,
        act: Callable[[Tensor], Tensor] = functional.gelu,
        norm: bool = False,
    ) -> None:
        super().__init__()
        sizes = [inputs, *[width] * layers]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(sizes))
        self.norm = nn.LayerNorm(width) if norm else nn.Identity()
        self.head = nn.Linear(width, classes)
        self.act = act

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = self.act(layer(x))
        scores: Tensor = self.head(self.norm(x))
        return scores


class Recurrent(nn.Module):
    """A character model around nn.GRU, or nn.RNN with ``cell="RNN"``."""

    def __init__(
        self, width: int = 64, embedding: int = 24, cell: str = "GRU", characters: int = len(LETTERS), **cell_options: Any
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, embedding)
        self.cell = getattr(nn, cell)(embedding, width, batch_first=True, **cell_options)
        self.head = nn.Linear(width, characters)

    def forward(self, x: Tensor) -> Tensor:
        hidden, _ = self.cell(self.embedding(x))
        scores: Tensor = self.head(hidden)
        return scores


class Block(nn.Module):
    def __init__(self, width: int, heads: int, norm: str) -> None:
        super().__init__()
        self.heads, self.norm = heads, norm
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.peak = 0.0  # largest attention logit of the latest forward pass

    def attend(self, x: Tensor) -> Tensor:
        rows, length, width = x.shape
        q, k, v = self.qkv(x).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        self.peak = float(scores.detach().abs().max())
        mask = torch.ones(length, length, dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(mask, -torch.inf).softmax(-1) @ v
        attended: Tensor = self.out(mixed.transpose(1, 2).reshape(rows, length, width))
        return attended

    def feed(self, x: Tensor) -> Tensor:
        fed: Tensor = self.down(functional.gelu(self.up(x)))
        return fed

    def forward(self, x: Tensor) -> Tensor:
        if self.norm == "post":  # the layout of 2017, which needs a warmup
            x = self.first(x + self.attend(x))
            after: Tensor = self.second(x + self.feed(x))
            return after
        x = x + self.attend(self.first(x))
        return x + self.feed(self.second(x))


class Transformer(nn.Module):
    def __init__(self, width: int = 48, layers: int = 2, heads: int = 4, context: int = 32, norm: str = "pre") -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(len(LETTERS), width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, norm) for _ in range(layers))
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, len(LETTERS))

    def forward(self, x: Tensor) -> Tensor:
        x = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        for block in self.blocks:
            x = block(x)
        scores: Tensor = self.head(self.last(x))
        return scores

    def peak(self) -> float:
        return max(block.peak for block in self.blocks if isinstance(block, Block))
