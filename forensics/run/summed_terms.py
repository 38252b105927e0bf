"""The loss of a detector whose log has only its terms: each is written with its weight, and the loss is their sum
(Ultralytics: ``self.loss.sum()`` over box, cls, dfl; YOLOv5: ``lbox + lobj + lcls``)."""

from __future__ import annotations

from collections.abc import Iterable

from parsers.lazy_regex import lazy_re

OF = {"loss.train": "train", "loss.eval": "val"}  # canonical name -> how the tags of its terms begin
_TERM = lazy_re(r"(train|val)/(?:box|obj|cls|dfl|seg|sem|pose|kobj|giou|l1|angle)_loss")


def terms(tags: Iterable[str], name: str) -> list[str]:
    """The tags whose values add up to a loss; none where there are fewer than two."""
    own = [tag for tag in tags if (m := _TERM.fullmatch(tag)) is not None and m[1] == OF[name]]
    return own if len(own) > 1 else []
