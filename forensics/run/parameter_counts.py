"""How many parameters a model has and how many of them train, as training scripts print it.

Peft prints `trainable params: 6,144 || all params: 68,928`, Lightning and Keras a table with a line each for trainable, non-trainable and total,
the Trainer `Number of trainable parameters = 6,144`; scripts of people say `47,188 parameters, 196 trainable`, `68.8k params, 0.3k require grad`,
`trainable params 196 / 47188`, `params total 73.0k trainable 0.4k` or `params 73.0k, in optimizer 0.4k`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from forensics.run.once import once
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

_N = r"(?<![\w.])(\d[\d,_]{0,20}(?:\.\d{1,9})?) ?([KMB])?\b"
_P = r"(?:model )?param(?:eter)?s?"
_OF = r" ?(?:/|\b(?:out )?of\b) ?"
_BARE = r"\d[\d,_.]{0,20} ?[KMB]?"
_IN_OPTIMIZER = r"(?:optimi[sz]ed|in (?:the )?optimi[sz]er)"
_TRAIN = (
    lazy_re(rf"(?i){_N}{_OF}{_BARE} {{1,9}}trainable {_P}\b"),
    lazy_re(rf"(?i)(?<!non-)\btrainable {_P}\W{{0,4}}{_N}"),
    lazy_re(rf"(?i){_N} {{1,9}}trainable {_P}\b"),
    lazy_re(rf"(?i)\b{_P}:? (?:total:? )?{_BARE},? trainable:? {_N}"),
    lazy_re(rf"(?i)\b{_P},? \(?{_N} (?:trainable|requires? grad)\b"),
    lazy_re(rf"(?i)\b{_P}\W{{1,3}}{_BARE}, {_IN_OPTIMIZER}:? {_N}"),
)
_STILL = (lazy_re(rf"(?i)\bnon-trainable {_P}\W{{0,4}}{_N}"), lazy_re(rf"(?i){_N} {{1,9}}non-trainable {_P}\b"))
_ALL = (
    lazy_re(rf"(?i)(?<!non-)\btrainable {_P}\W{{0,4}}{_BARE}{_OF}{_N}"),
    lazy_re(rf"(?i)(?<![\w.]){_BARE}{_OF}{_N} {{1,9}}trainable {_P}\b"),
    lazy_re(rf"(?i)\b(?:all|total) {_P}\W{{0,4}}{_N}"),
    lazy_re(rf"(?i){_N} {{1,9}}total {_P}\b"),
    lazy_re(rf"(?i){_N} {_P},? \(?\d"),
    lazy_re(rf"(?i)\b{_P}\W{{1,3}}{_N}, {_IN_OPTIMIZER}"),
    lazy_re(rf"(?i)\b{_P}:? (?:total:? )?{_N},? trainable\b"),
)
_OF_PEFT = "|| all params:"
_UNITS = {"K": 1e3, "M": 1e6, "B": 1e9}


@dataclass(frozen=True)
class Counts:
    """Parameters that train and all of them, with the file and line that says the first."""

    training: float
    all: float | None
    where: str
    adapters: bool = False  # Peft says so, which trains nothing else

    @property
    def share(self) -> float | None:
        return self.training / self.all if self.all else None


@once
def counts(run: Run) -> Counts | None:
    """What the log says last of the parameters that train; None where it says nothing."""
    events = run.tables["events"].select(["text", "source", "at"]).to_pylist()
    training, every, still, where, adapters = None, None, None, "", False
    for e in events:
        text = str(e["text"])[:300]
        if not any(word in text for word in ("rainable", "otal params", " grad", "ptimi")):
            continue
        if (found := _number(_TRAIN, text)) is not None:
            training, where = found, run.where(e["source"], e["at"])
        if (found := _number(_STILL, text)) is not None:
            still = found
        every, adapters = _number(_ALL, text) or every, adapters or _OF_PEFT in text
    if training is None:
        return None
    return Counts(training, every or (training + still if still is not None else None), where, adapters)


def _number(patterns: tuple[re.Pattern[str], ...], text: str) -> float | None:
    m = next((m for p in patterns if (m := p.search(text)) is not None), None)
    return None if m is None else float(m[1].replace(",", "").replace("_", "")) * _UNITS.get((m[2] or "").upper(), 1.0)
