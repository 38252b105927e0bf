"""`--redact` for an audit: rows, conclusions, ids and pages without the names of hosts and users, addresses and absolute paths.

Each name keeps one pseudonym throughout, so that "always on host 3" can still be seen. What an id gives away is hidden in the names
of the pages, too. A path keeps what lies below its root.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forensics import redact, remote, services
from forensics.audits.collect import Table
from forensics.audits.discover import Place


@dataclass(frozen=True)
class Names:
    """The pseudonyms of the whole audit, and what stands in for each id."""

    known: redact.Pseudonyms
    ids: dict[str, str]


def names(table: Table, roots: Sequence[str], cases: Iterable[dict[str, Any]] = (), texts: Iterable[Path] = ()) -> Names:
    """The names that the runs of an audit give away: their settings, rows, text files and the cases that become pages."""
    known = redact.Pseudonyms()
    told = [{"config": b.config, "path": b.path, "hosts": list(b.hosts)} for b in table.briefs]
    redact.learn([*told, *table.dicts(), *roots], known)
    for file in texts:
        redact.listen(redact.files.lines([file]), known)
    for path in roots:
        redact.root(path, known)
    for host in sorted({h for b in table.briefs for h in b.hosts if h.casefold() in known.names}):
        known.of("host", host)
    ids: dict[str, str] = {}
    taken: set[str] = set()
    for old in [row["id"] for row in table.dicts()]:
        plain = new = redact.file_name(old, known)
        n = 1
        while new.casefold() in taken:
            n += 1
            new = f"{plain}-{n}"
        taken.add(new.casefold())
        ids[old] = new
    found = Names(known, ids)
    for document in cases:  # the pages are drawn in other processes: their names get their numbers here
        redact.redacted(_with_ids(document, ids), known)
    return found


def texts(places: Iterable[Place]) -> Iterator[Path]:
    """The files of the places on this machine."""
    for place in places:
        if services.of(place.root) or not remote.is_url(place.root):
            root = Path(place.root)
            yield from ((root.parent if root.is_file() else root) / name for name in place.files[: redact.files.FILES])


def hide(table: Table, document: dict[str, Any], names: Names) -> dict[str, Any]:
    """Changes the rows, and gives the document, in which an id may be a value or a key."""
    rows = redact.cleaned([_with_ids(row, names.ids) for row in table.dicts()], names.known)
    table.rows[:] = [tuple(row.values()) for row in rows]
    hidden: dict[str, Any] = redact.redacted(_with_ids(document, names.ids), names.known)
    return hidden


def case(document: dict[str, Any], names: Names) -> dict[str, Any]:
    """The case of a run, with the pseudonyms of the whole audit; names that only it holds are numbered by themselves."""
    run = list(names.ids.values()).index(document["run"]["id"]) + 1
    known = replace(names.known, part=f"r{run}.", names=dict(names.known.names), given=dict(names.known.given), taken={})
    return redact.redacted(_with_ids(document, names.ids), known)


def _with_ids(x: Any, ids: dict[str, str]) -> Any:
    if isinstance(x, dict):
        return {ids.get(k, k): _with_ids(v, ids) for k, v in x.items()}
    if isinstance(x, list):
        return [_with_ids(v, ids) for v in x]
    return ids.get(x, x) if isinstance(x, str) else x
