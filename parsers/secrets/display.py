"""Names (tags, paths, ids, keys) as they are shown: without secrets, and still as many as there were."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from parsers.secrets.shapes import MASK, has_shapes, replaced, spans


def names(raw: Iterable[str]) -> dict[str, str]:
    """What is shown in place of each name that holds a secret; the other names are shown as they are.

    Each secret has one stand-in throughout (``***``, ``***~2``), so that two names that differ only in their secret stay
    two, and what lies in one folder stays in one folder.
    """
    known = list(dict.fromkeys(raw))
    if not has_shapes("\n".join(known).encode("utf-8", "replace")):
        return {}
    taken = "\n".join(known)
    free = (text for n in count(1) if (text := MASK if n == 1 else f"{MASK}~{n}") not in taken)
    stand_ins: dict[str, str] = {}

    def stand_in(secret: str) -> str:
        if secret not in stand_ins:
            stand_ins[secret] = next(free)
        return stand_ins[secret]

    shown = {name: replaced(name, found, stand_in) for name in known if (found := spans(name))}
    used = set(known) - shown.keys()
    for name, text in shown.items():  # a stand-in before a digit may read as another
        while text in used:
            text += "~"
        used.add(text)
        shown[name] = text
    return shown
