"""Works out the step of a line from what it names: global step, step, iteration within an epoch, or epoch alone.

Whether epochs count from 0 or 1 shows when an epoch 0 is seen. ``Epoch 2 | step 100/500`` is within its epoch
(Lightning, PyTorch tutorials) or over the whole run (nanochat): it shows when the epoch rises and the step does not.
"""

from __future__ import annotations

from parsers.console_format.line_prefix import Line
from parsers.records.vocabulary import COMPOSED_STEPS, EPOCH_STEPS


class Steps:
    """Where the log is: ``step`` and the ``line`` that said so."""

    def __init__(self) -> None:
        self.step: int | None = None
        self.line = -100
        self.epoch: int | None = None
        self.headed = False  # "Epoch 3/12" stands alone above its lines
        self.base = 1
        self.within, self.last = True, -1
        self.finer = False  # steps finer than epochs were seen
        self.way = ""  # how the last step was found: named, composed of epoch and iteration, epoch
        self.ways: set[str] = set()

    def heading(self, epoch: int) -> None:
        self.headed, self.epoch = True, epoch
        self.base = 0 if epoch == 0 else self.base

    def resolve(self, line: Line, parts: dict[str, int], n: int) -> int | None:
        """The step of a line that names one in any way, now also the step of the log."""
        epoch, it, total = parts.get("epoch"), parts.get("it"), parts.get("total")
        word = next((f.tag for f in line.fields if f.role == "it"), "")
        first = next((f.role for f in line.fields if f.role in {"it", "epoch"}), "it")
        self.base = 0 if epoch == 0 else self.base
        if it is not None and epoch is None and not word and not line.bar and self.headed:
            epoch = self.epoch  # keras: "Epoch 3/12" above
        step: int | None
        if "step" in parts:
            step, self.way = parts["step"], "named"
        elif it is not None and epoch is not None and total and (first == "epoch" or not word):
            if word and self.epoch is not None and epoch > self.epoch and not self.headed:
                self.within = it <= self.last or self.last < 0
            step, self.way = ((epoch - self.base) * total + it, "composed") if self.within or not word else (it, "named")
        elif it is not None:
            step, self.way = it, "named"
        else:  # only an epoch: on the axis of the steps where there is one
            step, self.way = (self.step, "") if self.step is not None and self.finer else (epoch, "epoch")
        self.ways.add(self.way)
        self.last = it if it is not None else self.last
        self.finer = self.finer or it is not None or "step" in parts
        self.epoch = epoch if epoch is not None else self.epoch
        self.step, self.line = step, n
        return step

    def axis(self) -> str:
        """What the steps count where that is not what lines name; nothing where they name it."""
        found = self.ways - {""}
        return EPOCH_STEPS if found == {"epoch"} else COMPOSED_STEPS if "composed" in found and "named" not in found else ""
