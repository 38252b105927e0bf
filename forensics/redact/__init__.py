"""`--redact`: hides who and where before a report is passed around. Secrets never reach a case; this is about people.

First the names of hosts and users are collected where settings and logs give them away (contexts.py), then every text is gone
through: what is known by its shape (shapes.py), and each name wherever it stands as a whole word. Numbers are left alone, and so are
the words of the reports themselves, those of training and generic accounts (vocabulary.py), so that a page reads as before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from forensics.published import incidents
from forensics.redact import contexts, patterns, plain_words
from forensics.redact import text_files as files
from forensics.redact.pseudonyms import GIVEN
from forensics.redact.pseudonyms import Pseudonyms as Pseudonyms
from parsers.lazy_regex import lazy_re

COVERS = (
    "Redacted: user and host names that settings, prompts, schedulers or logs give away, mail, IP and hardware addresses, hosts of URLs and "
    "absolute paths are replaced, the same by the same throughout. Kept are metric tags, names of settings, relative paths, times and "
    "sizes; free text may still name people, projects or machines in words that no pattern knows: read it before you send it."
)
_FIRST = 0xF0000  # the plane of private characters: one stands for each pseudonym while a text is worked at
_LAST = 0xFFFFD
_PRIVATE = lazy_re(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_AS_LOGGED = ("metric", "tag")  # names of metrics: a leading slash there begins no path


def redacted(document: dict[str, Any], known: Pseudonyms | None = None) -> dict[str, Any]:
    """A copy of a case or comparison that tells no names and places, and says that it was redacted."""
    known = known or Pseudonyms()
    own = _own(document)
    learn(own, known)
    clean = cleaned(own, known)
    assert isinstance(clean, dict)
    for h, before in zip(_causes(clean), _causes(document), strict=True):
        if "seen_before" in before:  # ours again, and not what a file says in its place
            h["seen_before"] = [i.to_json() for i in incidents.of_cause(str(h.get("id")))]
    return clean | {"redacted": COVERS}


def _own(document: dict[str, Any]) -> dict[str, Any]:
    """What a document tells of its run: published incidents, with their sources, are another's and public."""
    causes = document.get("hypotheses")
    if not isinstance(causes, list):
        return document
    return document | {"hypotheses": [{k: v for k, v in h.items() if k != "seen_before"} if isinstance(h, dict) else h for h in causes]}


def _causes(document: dict[str, Any]) -> list[dict[str, Any]]:
    causes = document.get("hypotheses")
    return [h for h in causes if isinstance(h, dict)] if isinstance(causes, list) else []


def learn(document: Any, known: Pseudonyms) -> None:
    """Collects the names that any JSON value gives away, and the folder of each run."""
    texts: dict[str, None] = {}
    for kind, text in _strings(document):
        texts[text] = None
        if kind:
            _know(known, contexts.in_setting(kind, text))
    known.reserve(texts)
    listen(texts, known)
    runs = (
        [document.get("run"), *(document.get("runs") or [] if isinstance(document.get("runs"), list) else [])]
        if isinstance(document, dict)
        else []
    )
    for run in runs:
        if isinstance(run, dict) and isinstance(run.get("path"), str):
            root(run["path"], known)


def listen(texts: Iterable[str], known: Pseudonyms) -> None:
    """Collects the names in running texts."""
    told = "\n".join(texts)
    known.accounts.update(contexts.accounts(told))
    _know(known, contexts.in_text(told))
    _know(known, patterns.url_names(told))


def learn_run(run: Any, known: Pseudonyms) -> None:
    """The names that a run's own settings, log and text files give away, whether or not the case repeats those places."""
    config = run.tables["config"].select(["key", "value"]).to_pydict()
    for key, value in zip(config["key"], config["value"], strict=True):
        try:
            learn({key: json.loads(value)}, known)
        except (ValueError, TypeError, RecursionError):
            continue
    events = run.tables["events"].column("text").unique().to_pylist()
    listen([t for t in events if t] + [s.path for s in run.sources], known)
    if run.root:
        below = Path(run.root) if Path(run.root).is_dir() else Path(run.root).parent
        listen(files.lines(below / s.path for s in run.sources), known)


def root(path: str, known: Pseudonyms) -> None:
    """What lies below a run's folder stays readable relative to it."""
    path = path.rstrip("/\\")
    below = any(path == r or path.startswith(r + "/") for r in known.roots)  # the root of an audit says more
    if not below and re.match(r"[\\/~].|[A-Za-z]:[\\/]|\w[\w+.\-]*://", path):
        known.roots.append(path)


def _know(known: Pseudonyms, found: Iterable[tuple[str, str]]) -> None:
    for kind, name in found:
        if (kind in ("nodes", "serial") and len(name) > 3) or plain_words.is_name(name):
            known.know(kind, name)


def _strings(x: Any, kind: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a JSON value, keys too, with the kind of name that its setting holds."""
    if isinstance(x, dict):
        told = next((x[k] for k in ("key", "name", "variable") if isinstance(x.get(k), str)), "")
        columns = x.get("columns") if isinstance(x.get("columns"), list) and isinstance(x.get("rows"), list) else None
        for k, v in x.items():
            plural = str(k).casefold() in ("hosts", "nodes", "users", "machines") and isinstance(v, dict)
            yield "", str(k)
            setting = told if k in ("a", "b", "value", "values") and told else str(k)
            if plural:
                yield from ((contexts.kind_of(str(k)), str(name)) for name in v)
            if columns and k == "rows":
                yield from _cells(columns, v)
            yield from _strings(v, contexts.kind_of(setting))
    elif isinstance(x, list):
        row = contexts.kind_of(x[0]) if len(x) > 1 and isinstance(x[0], str) and not kind and re.fullmatch(r"[\w.\-]+", x[0]) else ""
        for i, v in enumerate(x):
            yield from _strings(v, row if row and i else kind)
    elif isinstance(x, str):
        yield kind, x


def _cells(columns: list[Any], rows: list[Any]) -> Iterator[tuple[str, str]]:
    kinds = [contexts.kind_of(c) if isinstance(c, str) else "" for c in columns]
    for row in rows:
        if isinstance(row, list):
            yield from ((kind, v) for kind, v in zip(kinds, row, strict=False) if kind and isinstance(v, str))


def cleaned(x: Any, known: Pseudonyms, key: str = "") -> Any:
    """Any JSON value with its texts cleaned, keys as well as values."""
    if isinstance(x, dict):
        out: dict[str, Any] = {}
        for k, v in x.items():
            new = clean_name(k, known) if isinstance(k, str) else k
            out[_unused(new, out)] = cleaned(v, known, str(k))
        return out
    if isinstance(x, list):
        told = x[0] if x and isinstance(x[0], str) and "version" in x[0].casefold() else key
        return [v if type(v) in (int, float) else cleaned(v, known, told) for v in x]
    if not isinstance(x, str):
        return x
    return clean_name(x, known) if key in _AS_LOGGED else clean(x, known, version="version" in key.casefold())


def _unused(key: Any, out: dict[str, Any]) -> Any:
    """Two keys that differ only in what is hidden stay two."""
    n, new = 2, key
    while new in out:
        new, n = f"{key} ({n})", n + 1
    return new


def file_name(stem: str, known: Pseudonyms) -> str:
    """The name of a file or an id, with pseudonyms that every file system takes."""
    return re.sub(r"[<>]", "", clean(stem, known)).replace("/", "__")


def clean_name(text: str, known: Pseudonyms) -> str:
    """The name of a metric or setting: only the names in it, and what is an address."""
    return _worked(
        text,
        known,
        lambda t, put: _names(patterns.addresses(patterns.mails(patterns.hardware(t, known, put), known, put), known, put), known, put),
    )


def clean(text: str, known: Pseudonyms, *, version: bool = False) -> str:
    """A text without names and places; a setting that says a version holds no address."""

    def work(t: str, put: Callable[[str], str]) -> str:
        t = _roots(t, known, put)
        t = patterns.hardware(t, known, put)
        if "://" in t:
            t = patterns.urls(t, known, put)
        t = patterns.encoded(t, put)
        if "@" in t:
            t = patterns.mails(t, known, put)
            t = patterns.remotes(t, known, put)
        if not version:
            t = patterns.addresses(t, known, put)
        if "/" in t or "\\" in t:
            t = patterns.paths(t, put)
        return _names(patterns.full_names(t, known, put), known, put)

    return _worked(text, known, work)


def _worked(text: str, known: Pseudonyms, work: Callable[[str, Callable[[str], str]], str]) -> str:
    """Pseudonyms become single private characters while a text is worked at, so that none is changed again."""
    laid: list[str] = []

    def put(pseudonym: str) -> str:
        laid.append(pseudonym)
        return chr(_FIRST + len(laid) - 1) if len(laid) < _LAST - _FIRST else "<hidden>"

    text = GIVEN.sub(lambda m: put(m[0]), _PRIVATE.sub("\ufffd", text))
    return _PRIVATE.sub(lambda m: laid[ord(m[0]) - _FIRST], work(text, put))


def _names(text: str, known: Pseudonyms, put: Callable[[str], str]) -> str:
    for name in known.within(text):
        whole = re.compile(rf"(?i)(?<![^\W_]){re.escape(name)}(?![^\W_])")
        if whole.search(text):
            text = whole.sub(put(known.of(known.names[name], name)), text)
    return text


def _roots(text: str, known: Pseudonyms, put: Callable[[str], str]) -> str:
    for path in sorted((p for p in known.roots if p in text), key=len, reverse=True):
        last = re.split(r"[\\/]+", path)[-1]
        shown = f"{put('<path>')}/{last}" if len(re.findall(r"[^\\/]+", path)) > 1 else path
        whole = re.compile(rf"(?<![\w.\-]){re.escape(path)}(?=$|[\s\\/'\",;:)\]`])")
        text = shown.join(whole.split(text))
    return text
