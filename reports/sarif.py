"""The case as SARIF 2.1.0 (OASIS), for what shows results beside the files they are in: a finding is a result.

A finding without a place in a file is placed at the run. Checks that could not tell are notifications of the invocation, so that a clean
list is not taken for a clean bill of health.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from reports import first_screen, text_format
from reports.schema import complete
from reports.text_format import one_line

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {"critical": "error", "warning": "warning", "info": "note"}
_PLACE = re.compile(r"(.+) (line|byte) (\d+)")
Json = dict[str, Any]


def render(case: Json) -> str:
    """One SARIF run with a result for each finding."""
    full = complete(case)
    rules = {c["id"]: _rule(c["id"], c["rule"]) for c in full["checks"] if c["status"] == "fired"}
    rules |= {f["kind"]: _rule(f["kind"], "") for f in full["findings"] if f["kind"] not in rules}
    known = list(rules)
    unsure = first_screen.by_status(full, "cannot_tell", "error")
    notes = [{"level": "note", "message": {"text": one_line(f"{c['id']} could not be checked: {c['note']}")}} for c in unsure]
    causes = [{"id": h["id"], "title": one_line(h["title"]), "probability": h["probability"]} for h in first_screen.causes(full)[:5]]
    return _log(
        full["tool"]["version"],
        list(rules.values()),
        [_result(full, f, known.index(f["kind"])) for f in full["findings"]],
        invocations=[{"executionSuccessful": True, "toolExecutionNotifications": notes}],
        automationDetails={"id": f"forensics/{one_line(full['run']['id'])}"},
        properties={"verdict": full["verdict"], "answer": one_line(full["answer"]), "causes": causes},
    )


def audit(document: Json) -> str:
    """One SARIF run with a result for each run that went wrong; its rule is the leading cause."""
    bad = [r for r in document["rows"] if r["verdict"] == "unhealthy"]
    titles = {str(c["cause"]): str(c.get("title", c["cause"])) for c in document["causes"]}
    known = list(dict.fromkeys(str(r["top_cause"]) for r in bad))
    results = [
        {
            "ruleId": str(r["top_cause"]),
            "ruleIndex": known.index(str(r["top_cause"])),
            "level": "error",
            "message": {"text": one_line(f"{r['id']}: {r['answer']}")},
            "locations": [_location(str(r["path"]), "")],
            "partialFingerprints": {"run/v1": one_line(r["id"])},
        }
        for r in bad
    ]
    failed = [{"level": "error", "message": {"text": one_line(f"{f['id']}: {f['error']}")}} for f in document["failed"]]
    done = {"executionSuccessful": True, "toolExecutionNotifications": failed}
    rules = [_rule(cause, "", titles.get(cause, "")) for cause in known]
    return _log(document["tool"]["version"], rules, results, invocations=[done], automationDetails={"id": "forensics/audit"})


def _log(version: str, rules: Sequence[Json], results: Sequence[Json], **more: Any) -> str:
    driver = {"name": "forensics", "version": one_line(version), "rules": rules}
    run = {"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints", **more}
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"  # ASCII, as the case: nothing in it steers a terminal


def _rule(id: str, text: str, title: str = "") -> Json:
    rule: Json = {"id": id, "shortDescription": {"text": one_line(title) or id.replace("_", " ").capitalize()}}
    if text:
        rule["fullDescription"] = {"text": one_line(text)}
    return rule | {"help": {"text": f"`forensics explain {id}` says how it is decided, and when it cannot be."}}


def _result(case: Json, f: Json, rule: int) -> Json:
    places = list(dict.fromkeys(e["where"] for e in f["evidence"] if e["where"])) or [""]
    at = text_format.at(case["run"], f)
    return {
        "ruleId": f["kind"],
        "ruleIndex": rule,
        "level": LEVELS[f["severity"]],
        "message": {"text": one_line(f["title"] + (f" ({at})" if at and at not in f["title"] else ""))},
        "locations": [_location(case["run"]["path"], place) for place in places[:1]],
        "relatedLocations": [{"id": i, **_location(case["run"]["path"], place)} for i, place in enumerate(places[1:9], 1)],
        "partialFingerprints": {"finding/v1": f"{one_line(case['run']['id'])}/{one_line(f['id'])}"},
        "properties": {"id": one_line(f["id"]), "severity": f["severity"], "steps": f["labels"], "times": f["times"]},
    }


def _location(run: str, place: str) -> Json:
    """A place as the case writes it, "train.log line 812", below the path of the run."""
    m = _PLACE.fullmatch(one_line(place))
    name = m[1] if m else one_line(place)
    run = one_line(run).rstrip("/") or "."
    is_file = run == name or run.endswith(f"/{name}")  # a run that is one file
    path = run if is_file or not name else name if run == "." else f"{run}/{name}"
    where: Json = {"artifactLocation": {"uri": _uri(path)}}
    if m and m[2] == "line" and int(m[3]) > 0:
        where["region"] = {"startLine": int(m[3])}
    elif m and m[2] == "byte":
        where["region"] = {"byteOffset": int(m[3]), "byteLength": 0}
    return {"physicalLocation": where}


def _uri(path: str) -> str:
    scheme, mark, rest = path.partition("://")
    if mark and scheme.isalnum():
        return f"{scheme}://{quote(rest)}"
    return f"file://{quote(path)}" if path.startswith("/") else quote(path)
