"""The promises as checks on what a run of the command left behind."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hostile.case import CANARY, Case, Points

# what steers a terminal or reorders text: C0 without newline and tab, DEL, C1, bidi marks, separators
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
PLACE = re.compile(r"(?:byte|line|row|entry|record) \d+")


def snapshot(folder: Path) -> dict[bytes, Any]:
    """Every entry below: kind, mode, times and content, by its path as bytes."""
    found: dict[bytes, Any] = {}
    waiting = [os.fsencode(folder)]
    while waiting:
        where = waiting.pop()
        try:
            entries = list(os.scandir(where))
        except OSError:
            continue
        for entry in entries:
            try:
                facts = entry.stat(follow_symlinks=False)
            except OSError:  # deeper than a path may be long
                continue
            digest = ""
            if stat.S_ISREG(facts.st_mode):
                try:
                    with open(entry.path, "rb") as f:
                        digest = hashlib.file_digest(f, "sha256").hexdigest()
                except OSError:
                    pass
            found[entry.path] = (facts.st_mode, facts.st_size, facts.st_mtime_ns, digest)
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
    return found


def difference(before: dict[bytes, Any], after: dict[bytes, Any]) -> str:
    return str([k for k in {*before, *after} if before.get(k) != after.get(k)][:3])


def look(case: Case, work: Path) -> int:
    """Writes the broken promises of a case to ``broken.json``."""
    try:
        broken = list(_broken(case, work))
    except Exception as e:
        broken = [f"check: {type(e).__name__}: {e}"]
    (work / "broken.json").write_text(json.dumps([b[:600] for b in broken]))
    return 0


def _broken(case: Case, work: Path) -> Iterator[str]:
    said = {name: (work / name).read_bytes() for name in ("stdout", "stderr")}
    if not (work / "codes").exists():
        yield f"the command broke off: {said['stderr'][-300:]!r}"
        return
    codes = json.loads((work / "codes").read_text())
    text = {name: data.decode("utf-8", "backslashreplace") for name, data in said.items()}
    if not set(codes) <= set(case.exits):
        yield f"exit codes {codes}, not {case.exits}: {text['stderr'][-400:]}"
    for word in ("Traceback", "bug in forensics", "Warning", "Error:"):
        if word in text["stderr"] and word not in case.present:
            yield f"stderr has {word!r}: {text['stderr'][-400:]}"
    for name, shown in text.items():
        if match := CONTROL.search(shown):
            yield f"{name} holds {match[0]!r}: {shown[max(match.start() - 60, 0) : match.end() + 20]!r}"
        if len(shown) > 40_000 and not any("--json" in v for v in case.verbs if not callable(v)):
            yield f"{name} has {len(shown)} characters"
    strays = [p for name in ("cwd", "tmp", "home") for p in snapshot(work / name)]
    strays += [p for p in snapshot(work) if os.path.basename(p) == CANARY.encode()] + list(work.parent.glob(CANARY))
    if strays:
        yield f"files outside the output, or something was run: {strays[:3]}"
    if codes[0] == 1 and not text["stderr"].strip():
        yield "exit 1 without a word"
    files = {p.relative_to(work / "out").as_posix(): p for p in (work / "out").rglob("*") if p.is_file()}
    if case.verbs:
        yield from _any_outputs(case, text, files)
        return
    if codes[0] == 1 and any(n.startswith("r.") for n in files):
        yield f"failed, and left {sorted(files)}"
    known = re.compile(r"r\.html|r\.md|r\.case\.json|tables/(?:[^/]+/)?\w+\.parquet")
    if odd := [n for n in files if not known.fullmatch(n)]:
        yield f"unexpected outputs {odd[:3]}"
    everything = dict(text)
    if codes[0] == 0:
        everything |= {n: files[n].read_text("utf-8") for n in ("r.html", "r.md", "r.case.json") if n in files}
        yield from _report(case, everything)
    rows = _tables(work / "out" / "tables")
    everything["tables"] = "\n".join(_texts(rows))
    yield from _words(case, everything)
    yield from _kept(case, rows.get("metrics", []))


def _words(case: Case, everything: dict[str, str]) -> Iterator[str]:
    for secret in case.absent:  # "page:..." is hidden from the report, for --redact is no option of `tables`
        secret, report_only = secret.removeprefix("page:"), secret.startswith("page:")
        for name, held in everything.items():
            if report_only and name == "tables":
                continue
            if secret in held:
                at = held.index(secret)
                yield f"{name} holds {secret!r}: {held[max(at - 80, 0) : at + 80]!r}"
    for word in case.present:
        if not any(word in held for held in everything.values()):
            yield f"{word!r} is nowhere"


def _any_outputs(case: Case, said: dict[str, str], files: dict[str, Path]) -> Iterator[str]:
    """What holds for the pages, texts and tables of any verb, whatever their names."""
    everything = dict(said)
    for name, path in files.items():
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            everything[name] = "\n".join(_texts({"": pq.read_table(path, use_threads=False).to_pylist()}))
            continue
        everything[name] = text = path.read_text("utf-8")
        if path.suffix == ".html":
            yield from (f"{name}: {what}" for what in _page(text, path.parent))
        elif path.suffix == ".md":
            yield from (f"{name}: {what}" for what in _markdown(text))
        elif path.suffix == ".json":
            json.loads(text, parse_constant=lambda c: 1 / 0)
    yield from _words(case, everything)


def _report(case: Case, out: dict[str, str]) -> Iterator[str]:
    if {"r.html", "r.md", "r.case.json"} - set(out):
        yield f"missing outputs: only {sorted(out)}"
        return
    document = json.loads(out["r.case.json"], parse_constant=lambda c: 1 / 0)
    for check in document["checks"]:
        if check["status"] == "error":
            yield f"detector {check['id']} broke: {check['note']}"
    for gap in document["gaps"]:
        if not gap["path"] or not PLACE.match(gap["at"] or ""):
            yield f"gap without file or place: {gap}"
        if "broke off" in gap["what"]:
            yield f"a parser broke off: {gap}"
    for path, at in case.gaps:
        if not any(g["path"].endswith(path) and re.match(re.escape(at) + r"(?!\d)", g["at"]) for g in document["gaps"]):
            yield f"no gap at {path} {at}: {[(g['path'], g['at'], g['what'], g['lost']) for g in document['gaps']][:8]}"
    lost = sum(g["lost"] or 0 for g in document["gaps"])
    if case.lost is not None and lost != case.lost:
        yield f"{lost} records counted as lost, not {case.lost}: {[(g['at'], g['what'], g['lost']) for g in document['gaps']][:8]}"
    yield from _page(out["r.html"])
    yield from _markdown(out["r.md"])


def _page(page: str, beside: Path | None = None) -> Iterator[str]:
    """`beside`: the folder in which other pages of ours may be linked to."""
    if not page.startswith("<!doctype html>") or not page.rstrip().endswith("</html>"):
        yield "the page is not whole"
    if len(page) > 30_000_000:
        yield f"the page has {len(page)} characters"
    if match := CONTROL.search(re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.DOTALL)):
        yield f"the page holds {match[0]!r}"
    yield from _markup(page, beside)


def _markdown(text: str) -> Iterator[str]:
    prose = re.sub(r"(`+).*?\1", "", text, flags=re.DOTALL)
    if match := re.search(r"(?<!\\)<[a-zA-Z!/]", prose):
        yield f"Markdown holds markup: {prose[match.start() : match.start() + 60]!r}"


class _Elements(HTMLParser):
    """Elements with their attributes, and the content of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[tuple[dict[str, str], str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts = {k: v or "" for k, v in attrs}
        self.found.append((tag, facts))
        if tag == "script":
            self.scripts.append((facts, ""))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            facts, before = self.scripts[-1]
            self.scripts[-1] = (facts, before + data)


def _markup(page: str, beside: Path | None) -> Iterator[str]:
    """Nothing of the input may have become an element, a handler, a script or an address."""
    parser = _Elements()
    parser.feed(page)
    policy = " ".join(a.get("content", "") for t, a in parser.found if t == "meta" and "http-equiv" in a)
    if "default-src 'none'" not in policy or "unsafe" in policy.replace("'unsafe-hashes'", ""):
        yield f"the page's policy is {policy!r}"
    for tag, facts in parser.found:
        if tag in {"iframe", "object", "embed", "form", "base", "link", "img", "video", "audio", "marquee", "frame"}:
            yield f"the page has <{tag} {facts}>"
        for name, value in facts.items():
            if name.startswith("on") or (name in {"href", "src", "xlink:href", "action"} and not _is_ours(value, beside)):
                yield f"the page has <{tag} {name}={value[:80]!r}>"
    for facts, content in parser.scripts:
        if facts.get("type") == "application/json":
            json.loads(content)
            continue
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        if f"'sha256-{digest}'" not in policy:
            yield f"a script that is not ours: {content[:80]!r}"


def _is_ours(address: str, beside: Path | None) -> bool:
    if beside is None or ":" in address or len(address) > 1000:
        return address.startswith("#")
    return address.startswith("#") or (beside / unquote(address)).is_file()


def _tables(folder: Path) -> dict[str, list[dict[str, Any]]]:
    import pyarrow.parquet as pq

    rows: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.rglob("*.parquet")):
        rows.setdefault(path.stem, []).extend(pq.read_table(path, use_threads=False).to_pylist())
    return rows


def _texts(rows: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """Each text of the tables once."""
    seen = {v for table in rows.values() for row in table for v in row.values() if isinstance(v, str)}
    yield from sorted(seen)


def _kept(case: Case, metrics: list[dict[str, Any]]) -> Iterator[str]:
    for tag, wanted in case.kept.items():
        found = _ordered([(r["step"], r["value"]) for r in metrics if r["tag"] == tag])
        expected = _ordered(wanted)
        if found != expected:
            have, want = set(found), set(expected)
            lacks, more = [p for p in expected if p not in have], [p for p in found if p not in want]
            tags = [t[:40] for t in sorted({r["tag"] for r in metrics})[:6]]
            yield f"{tag[:40]!r}: {len(found)} points, not {len(expected)}; lacks {lacks[:5]}, has besides {more[:5]}; tags {tags}"


def _ordered(wanted: Points) -> list[tuple[Any, ...]]:
    """Comparable, with NaN equal to itself."""
    plain = [(s, "nan" if math.isnan(v) else float(v)) for s, v in wanted]
    return sorted(plain, key=lambda p: (p[0] is not None, p[0] or 0, str(p[1])))
