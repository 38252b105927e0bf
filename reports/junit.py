"""The case as JUnit XML, which every CI shows: a check is a test, one that could not tell is skipped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from reports import do_next, first_screen, text_format
from reports.schema import complete
from reports.text_format import one_line, visible

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, production 2
SHOWN = 20  # findings told of one check
Case = dict[str, Any]
Test = tuple[str, str, str, str]  # name, what became of it (failure, error, skipped or ""), message, text


def render(case: Case) -> str:
    """A suite: the verdict as the first test, then each check."""
    full = complete(case)
    run = full["run"]["id"]
    return _suite(run, [_verdict(full), *(_check(full, c) for c in full["checks"])])


def audit(document: Case) -> str:
    """A suite with a test for each run."""
    tests: list[Test] = []
    for r in document["rows"]:
        kind = "error" if r["error"] else {"unhealthy": "failure", "inconclusive": "skipped"}.get(str(r["verdict"]), "")
        tests.append((str(r["id"]), kind, str(r["answer"] or r["error"] or ""), f"forensics analyze {r['path']}" if kind else ""))
    return _suite("audit", tests)


def _verdict(case: Case) -> Test:
    kind = {"unhealthy": "failure", "inconclusive": "skipped"}.get(case["verdict"], "")
    causes = [f"{h['title']}: {first_screen.why(h)}" for h in first_screen.causes(case)[:4]] if first_screen.top(case) else []
    todo = [f"{i}. {lead} {text}".replace("  ", " ") for i, (lead, text) in enumerate(do_next.do_next(case), 1)]
    return "verdict", kind, case["answer"], "\n".join([*causes, *todo]) if kind == "failure" else ""


def _check(case: Case, check: Case) -> Test:
    if check["status"] in ("cannot_tell", "error"):
        return check["id"], {"cannot_tell": "skipped", "error": "error"}[check["status"]], check["note"], ""
    found = [f for f in case["findings"] if f["kind"] == check["id"]]
    grave = [f for f in found if f["severity"] != "info"]
    told = "\n".join(_line(case["run"], f) for f in (grave or found)[:SHOWN])
    return check["id"], "failure" if grave else "", grave[0]["title"] if grave else "", told


def _line(run: Case, f: Case) -> str:
    where = ", ".join(dict.fromkeys(e["where"] for e in f["evidence"] if e["where"]))
    return " ".join(filter(None, (f["severity"], f["id"], text_format.at(run, f), f["title"], f"({where})" if where else "")))


def _suite(name: str, tests: Sequence[Test]) -> str:
    counts = {f"{kind}{'' if kind == 'skipped' else 's'}": sum(t[1] == kind for t in tests) for kind in ("failure", "error", "skipped")}
    sums = {"tests": str(len(tests))} | {what: str(n) for what, n in counts.items()}
    top = ElementTree.Element("testsuites", {"name": "forensics", **sums})
    suite = ElementTree.SubElement(top, "testsuite", {"name": _xml(name), **sums})
    for id, kind, message, text in tests:
        test = ElementTree.SubElement(suite, "testcase", name=_xml(id), classname=_xml(f"forensics.{name}"))
        if kind:
            ElementTree.SubElement(test, kind, message=_xml(message)).text = _xml(text, lines=True) or None
        elif text:
            ElementTree.SubElement(test, "system-out").text = _xml(text, lines=True)
    ElementTree.indent(top)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(top, encoding="unicode")}\n'


def _xml(text: Any, *, lines: bool = False) -> str:
    return _NOT_XML.sub("\ufffd", visible(text) if lines else one_line(text))
