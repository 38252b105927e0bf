"""What an audit wrote into its folder, so that the next one replaces and removes nothing else.

The list is written before the files are: whatever a killed audit left is in it. A file counts as ours where it is listed and,
where it is the page or case of a run, still begins as ours do; a case with the author's notes in it is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from forensics import remote
from forensics.audits import storage
from forensics.errors import ForensicsError
from parsers.lazy_regex import lazy_re
from parsers.unclaimed import is_report

OUTPUTS = ("audit.parquet", "audit.json", "index.html", "summary.md")
PAGES = "runs"
_NAME = f"{storage.STATE}/manifest.json"
KEPT = {
    "rows": lazy_re(r"[0-9a-f]{32}\.jsonl"),
    "seen": lazy_re(r"listing\.json"),
    "cases": lazy_re(r"[0-9a-f]{24}-[0-9a-f]{12}\.json\.gz"),
}


def listed(out: str) -> set[str]:
    """The names that earlier audits wrote, relative to the folder."""
    try:
        return set(map(str, json.loads(storage.read(out, _NAME) or b"[]")))
    except (ValueError, TypeError, RecursionError):  # damaged: nothing is known to be ours
        return set()


def write(out: str, names: Iterable[str]) -> None:
    storage.write(out, _NAME, json.dumps(sorted(names), indent=0) + "\n")


def begin(out: str, redact: bool) -> None:
    """Raises ForensicsError where the outputs of an audit would replace files that are not of one."""
    known = listed(out)
    for folder in (PAGES, storage.STATE):
        if not remote.is_url(out) and (Path(out) / folder).is_symlink():
            raise ForensicsError(f"{out}/{folder} is a link to another folder: nothing is written there", "Give another place with --out.")
    for name in OUTPUTS:
        if storage.exists(out, name) and not is_ours(out, name, known):
            raise ForensicsError(f"{out}/{name} is not of an audit: left as it is", "Give another place with --out.")
    noted = [n for n in known if redact and has_notes(out, n)]
    if noted:
        raise ForensicsError(f"{out}/{noted[0]} has notes, and may name what --redact hides", "Give another place with --out.")
    write(out, known | set(OUTPUTS))


def refuse_another(out: str) -> None:
    """Raises ForensicsError where the folder holds an audit."""
    known = listed(out)
    if any(is_ours(out, name, known) for name in OUTPUTS):
        hint = "Use --resume (resume=True in Python) to go on with it, --force (force=True) to replace it."
        raise ForensicsError(f"{out} holds an audit already", hint)


def is_ours(out: str, name: str, known: set[str]) -> bool:
    if name not in known or not _is_plain(name):
        return False
    return name in OUTPUTS or is_report(storage.head(out, name))


def _is_plain(name: str) -> bool:
    """One of the names that an audit writes: a damaged list leads nowhere else."""
    folder, _, file = name.rpartition("/")
    return name in OUTPUTS or (folder == PAGES and file not in ("", ".", "..") and "\0" not in file)


def has_notes(out: str, name: str) -> bool:
    if not name.endswith(".case.json"):
        return False
    try:
        document = json.loads(storage.read(out, name) or b"{}")
        return bool(document.get("notes")) or any(h.get("ruled_out") for h in document["hypotheses"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def free(out: str, ids: Iterable[str]) -> list[str]:
    """The ids whose pages may be written: nobody else's file has their names."""
    known = listed(out)

    def is_free(name: str) -> bool:
        return not storage.exists(out, name) or is_ours(out, name, known)

    return [i for i in ids if all(map(is_free, pages_of(i)))]


def pages_of(id: str) -> tuple[str, str]:
    return f"{PAGES}/{id}.html", f"{PAGES}/{id}.case.json"


def keep_only(out: str, ids: Iterable[str], *, fresh: bool) -> None:
    """Lists the pages of these ids, and removes the other pages of earlier audits; with `fresh` all of them."""
    wanted = {name for i in ids for name in pages_of(i)}
    known = listed(out)
    write(out, known | wanted)
    for name in sorted(known - set(OUTPUTS) - (set() if fresh else wanted)):
        html, case = pages_of(name.removeprefix(f"{PAGES}/").removesuffix(".html").removesuffix(".case.json"))
        if name in (html, case) and is_ours(out, name, known) and not has_notes(out, case):
            storage.remove(out, name)
    write(out, {n for n in known | wanted if n in wanted or n in OUTPUTS or storage.exists(out, n)})


def forget(out: str, *kinds: str) -> None:
    """Removes what was kept for --resume: `rows`, `cases`."""
    for kind in kinds:
        folder = f"{storage.STATE}/{kind}"
        storage.remove(out, *(f"{folder}/{name}" for name in storage.names(out, folder) if KEPT[kind].fullmatch(name)))
