"""Names in a TensorBoard file: tags as numbers, the plugin that a tag belongs to, and what is only counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from parsers.span_codes import Spans
from parsers.tensorboard_format.one_event import plugin

NO_SCALARS = ("hparams", "text", "images", "audio", "histograms")  # plugins whose tensors are something else


@dataclass
class Names:
    """Tags, and the plugin of each: the first that a record of the tag names, since later ones may name none."""

    tags: Spans = field(default_factory=Spans)
    metadata: Spans = field(default_factory=Spans)
    plugin: dict[int, str] = field(default_factory=dict)  # by code of the tag

    def learn(self, tags: npt.NDArray[np.int32], metadata: npt.NDArray[np.int32]) -> None:
        for pair in np.unique(tags.astype(np.int64) << 32 | metadata).tolist():  # there may be 200,000 of both
            tag, code = pair >> 32, pair & 0xFFFFFFFF
            if tag not in self.plugin:
                bytes_ = self.metadata.values[code]
                try:
                    name, _ = plugin(memoryview(bytes_), (0, len(bytes_)))
                except ValueError:
                    continue
                if name:
                    self.plugin[tag] = name

    def are(self, plugins: tuple[str, ...]) -> npt.NDArray[np.bool_]:
        """By code: tags of these plugins."""
        out = np.zeros(len(self.tags.values), np.bool_)
        out[[tag for tag, name in self.plugin.items() if name in plugins]] = True
        return out


NOUNS = {
    "images": "image",
    "audio": "audio clip",
    "text": "text of another shape",
    "hparams": "hparams record",
    "histograms": "histogram of another shape",
}


def noun(plugin: str) -> str:
    """What a record of a plugin is counted as."""
    return NOUNS.get(plugin, f"record of plugin {plugin}")


def counted(counts: Counter[str]) -> str:
    """'12 images and 3 audio clips, counted, not decoded'."""
    parts = [f"{n} {what if n == 1 else _plural(what)}" for what, n in sorted(counts.items()) if n]
    if not parts:
        return ""
    return (" and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]) + ", counted, not decoded"


def _plural(what: str) -> str:
    head, of, tail = what.partition(" of ")
    head, without, rest = head.partition(" without ")
    return f"{head}s{without}{rest}{of}{tail}"
