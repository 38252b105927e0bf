"""`--redact` for an audit: rows, conclusions and ids without hosts, users, mail addresses and absolute paths.

Each host and each name keeps one number throughout, so that "always on host 3" can still be seen. What an id gives away is hidden
in the names of the pages, too. A path keeps what lies below its root.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from forensics import redact
from forensics.audit.together import Table


@dataclass(frozen=True)
class Names:
    """What stands in for each root, host and name, and for each id."""

    roots: dict[str, str]
    stand_ins: dict[str, str]
    ids: dict[str, str]


def names(table: Table, roots: Sequence[str]) -> Names:
    """The names that the runs of an audit give away."""
    hosts = sorted({h for b in table.briefs for h in b.hosts if len(h) > 2})
    told = [{"config": b.config, "path": b.path} for b in table.briefs]
    others = sorted(redact.names_in([*told, *roots]) - {*hosts})
    stand_ins = {h: f"<host-{n}>" for n, h in enumerate(hosts, 1)} | {x: f"<name-{n}>" for n, x in enumerate(others, 1)}
    kept = {r.rstrip("/"): redact.cleaned(r.rstrip("/"), stand_ins) for r in roots}
    raw = [row["id"] for row in table.dicts()]
    ids: dict[str, str] = {}
    taken: set[str] = set()
    for old, text in zip(raw, redact.cleaned(raw, stand_ins), strict=True):
        plain = new = re.sub(r"[<>]", "", text).replace("/", "__")
        n = 1
        while new.casefold() in taken:
            n += 1
            new = f"{plain}-{n}"
        taken.add(new.casefold())
        ids[old] = new
    return Names(kept, stand_ins, ids)


def hide(table: Table, document: dict[str, Any], names: Names) -> dict[str, Any]:
    """Changes the rows, and gives the document, in which an id may be a value or a key."""
    rows = redact.cleaned([_known(list(row), names) for row in table.rows], names.stand_ins)
    table.rows[:] = [tuple(row) for row in rows]
    hidden: dict[str, Any] = redact.cleaned(_known(document, names), names.stand_ins)
    return hidden


def case(document: dict[str, Any], names: Names) -> dict[str, Any]:
    """The case of a run, with what stands in for names in the whole audit."""
    return redact.redacted(_known(document, names), names.stand_ins)


def _known(x: Any, names: Names) -> Any:
    """Ids by their stand-ins, and paths below a root by that of the root."""
    if isinstance(x, dict):
        return {names.ids.get(k, k): _known(v, names) for k, v in x.items()}
    if isinstance(x, list):
        return [_known(v, names) for v in x]
    if not isinstance(x, str):
        return x
    if x in names.ids:
        return names.ids[x]
    root = next((r for r in names.roots if x == r or x.startswith(r + "/")), None)
    return names.roots[root] + x[len(root) :] if root is not None else x
