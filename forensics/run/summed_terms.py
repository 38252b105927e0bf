"""The loss of a log that has only its terms: each is written with its weight, and the loss is their sum
(Ultralytics: ``self.loss.sum()`` over box, cls, dfl; YOLOv5: ``lbox + lobj + lcls``; DeepXDE: ``loss = sum(losses)``). Terms that are only
numbered, from the first one on, are of one kind: their sum stands for them.
"""

from __future__ import annotations

from collections.abc import Iterable

from parsers.lazy_regex import lazy_re

OF = {"loss.train": {"train"}, "loss.eval": {"val", "test"}}  # canonical name -> what the tags of its terms say
_TERM = lazy_re(r"(train|val)/(?:box|obj|cls|dfl|seg|sem|pose|kobj|giou|l1|angle)_loss|loss_(train|test)/\d+")
_NUMBERED = lazy_re(r"(?i)(?:(train|val|test)[ /_])?loss[ _]?(\d\d?)")


def terms(tags: Iterable[str], name: str) -> list[str]:
    """The tags whose values add up to a loss; none where there are fewer than two."""
    logged = list(tags)
    own = [tag for tag in logged if (m := _TERM.fullmatch(tag)) is not None and (m[1] or m[2]) in OF[name]]
    own = own or _numbered(logged, name)
    return own if len(own) > 1 else []


def _numbered(tags: list[str], name: str) -> list[str]:
    found = [(int(m[2]), tag) for tag in tags if (m := _NUMBERED.fullmatch(tag)) is not None and (m[1] or "train").lower() in OF[name]]
    numbers = sorted(n for n, _ in found)
    whole = numbers in (list(range(len(numbers))), list(range(1, len(numbers) + 1)))
    return [tag for _, tag in sorted(found)] if whole else []
