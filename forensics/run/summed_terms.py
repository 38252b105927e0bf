"""The loss of a log that has only its terms: each is written with its weight, and the loss is their sum
(Ultralytics: ``self.loss.sum()`` over box, cls, dfl; YOLOv5: ``lbox + lobj + lcls``; DeepXDE: ``loss = sum(losses)``)."""

from __future__ import annotations

from collections.abc import Iterable

from parsers.lazy_regex import lazy_re

OF = {"loss.train": {"train"}, "loss.eval": {"val", "test"}}  # canonical name -> what the tags of its terms say
_TERM = lazy_re(r"(train|val)/(?:box|obj|cls|dfl|seg|sem|pose|kobj|giou|l1|angle)_loss|loss_(train|test)/\d+")


def terms(tags: Iterable[str], name: str) -> list[str]:
    """The tags whose values add up to a loss; none where there are fewer than two."""
    own = [tag for tag in tags if (m := _TERM.fullmatch(tag)) is not None and (m[1] or m[2]) in OF[name]]
    return own if len(own) > 1 else []
