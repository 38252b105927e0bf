"""Who else is told of a new finding: a command of the user's, or an address on the web.

What is told holds texts of the run, which anybody may have written. So the command is run as it was typed, without a
shell, and gets the facts in its environment; the address gets them as JSON.
"""

from __future__ import annotations

import http.client
import json
import shlex
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from forensics import cold_start
from forensics.version import VERSION

PATIENCE = 5.0  # seconds for an address to answer
LONGEST = 60.0  # seconds for a command
_LIMIT = 4000  # characters of a fact; an environment holds some 100 KB
Document = dict[str, Any]


@dataclass(frozen=True)
class Told:
    """What is run or called, and who hears of a failure."""

    command: str | None
    webhook: str | None
    say: Callable[[str], None]
    visible: Callable[[str], str]

    def of(self, document: Document, finding: Document, case: str, page: str) -> None:
        """Tells of one finding; what fails is one line."""
        known = {k: self.visible(v)[:_LIMIT] if isinstance(v, str) else v for k, v in facts(document, finding, case, page).items()}
        if self.command:
            self._run(known)
        if self.webhook:
            self._post(known)

    def _run(self, known: Document) -> None:
        assert self.command is not None
        environment = {f"FORENSICS_{k.upper()}": "" if v is None else str(v) for k, v in known.items()}
        try:
            done = subprocess.run(
                shlex.split(self.command),
                env=cold_start.environment() | environment,
                stdin=subprocess.DEVNULL,
                timeout=LONGEST,
                check=False,
            )
        except (OSError, ValueError, subprocess.TimeoutExpired) as e:
            why = f"took longer than {LONGEST:.0f} seconds" if isinstance(e, subprocess.TimeoutExpired) else str(e)
            self.say(f"forensics: --exec: {why}")
            return
        if done.returncode:
            self.say(f"forensics: --exec ended with {done.returncode}")

    def _post(self, known: Document) -> None:
        assert self.webhook is not None
        post(self.webhook, json.dumps(known | {"text": f"{known['run']}: {known['title']}. {known['answer']}"}), self.say)


def post(address: str, body: str, say: Callable[[str], None]) -> None:
    """Sends JSON to an address; what fails is one line."""
    headers = {"Content-Type": "application/json", "User-Agent": f"forensics/{VERSION}"}
    try:
        request = urllib.request.Request(address, body.encode(), headers)
        with urllib.request.urlopen(request, timeout=PATIENCE):
            pass
    except (OSError, ValueError, http.client.HTTPException) as e:  # URLError and HTTPError are OSErrors
        told = isinstance(e, urllib.error.HTTPError)  # the others may repeat the address
        why = e if told else getattr(e, "reason", None) or type(e).__name__
        say(f"forensics: --webhook: {host(address)} did not take it: {why}")


def facts(document: Document, finding: Document, case: str, page: str) -> Document:
    """``text`` and ``FORENSICS_...`` are made of these."""
    first, last = finding["steps"]
    return {
        "run": document["run"]["id"],
        "path": document["run"]["path"],
        "verdict": document["verdict"],
        "answer": document["answer"],
        "finding": finding["id"],
        "kind": finding["kind"],
        "severity": finding["severity"],
        "title": finding["title"],
        "step": first,
        "last_step": last,
        "case": case,
        "page": page,
    }


def host(url: str) -> str:
    """The part of an address that is no secret: services put tokens into the path."""
    return urllib.parse.urlsplit(url).hostname or "the address"
