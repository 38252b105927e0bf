"""JSON over HTTP, politely: waits where a server says that it is asked too much, and says in one sentence what went wrong."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from forensics.errors import ForensicsError

TRIES = 6  # of a request that a server turns down for now
LONGEST = 60.0  # seconds that one wait may take
MOST = 1 << 29  # bytes of an answer
TIMEOUT = 60.0  # seconds without a byte
_FOR_NOW = {408, 425, 429, 500, 502, 503, 504}


class Refused(ForensicsError):
    """A server answered with an error; ``status`` is that of HTTP."""

    def __init__(self, message: str, hint: str, status: int) -> None:
        super().__init__(message, hint)
        self.status = status


def ask(url: str, body: Any = None, headers: Mapping[str, str] | None = None, insecure: bool = False) -> Any:
    """The JSON that an address answers: to GET, or with a body to POST. Raises ForensicsError."""
    text = raw(url, body, headers, insecure)
    try:
        return json.loads(text)
    except ValueError:
        raise ForensicsError(f"{_host(url)} does not answer with JSON", "Is that the address of the tracking server?") from None


def raw(url: str, body: Any = None, headers: Mapping[str, str] | None = None, insecure: bool = False) -> bytes:
    """The bytes that an address answers. Raises ForensicsError."""
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), {"Accept": "application/json"})
    if body is not None:
        request.add_header("Content-Type", "application/json")
    for name, value in (headers or {}).items():
        request.add_unredirected_header(name, value)  # another host gets no key
    context = ssl._create_unverified_context() if insecure else ssl.create_default_context(cafile=_authorities())
    for n in range(TRIES):
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT, context=context) as answer:
                found: bytes = answer.read(MOST)
                return found
        except urllib.error.HTTPError as e:
            if e.code not in _FOR_NOW or n == TRIES - 1:
                raise Refused(f"{_host(url)} answers {e.code}: {_said(e)}", _hint(e.code), e.code) from None
            time.sleep(_wait(e.headers.get("Retry-After"), n))
        except (OSError, ValueError, http.client.HTTPException) as e:  # no such host, nobody listens, no answer in time
            raise ForensicsError(
                f"{_host(url)} cannot be reached: {getattr(e, 'reason', None) or e}", "Is the address right, and may this machine reach it?"
            ) from None
    raise AssertionError


def _authorities() -> str | None:
    """The file of certificates that MLflow's clients use."""
    return os.environ.get("MLFLOW_TRACKING_SERVER_CERT_PATH") or os.environ.get("REQUESTS_CA_BUNDLE")


def _wait(said: str | None, n: int) -> float:
    return min(float(said), LONGEST) if said and said.isdigit() else min(2.0**n, LONGEST)


def _hint(status: int) -> str:
    return "Set the key or the user and password that the server asks for." if status in (401, 403) else ""


def _said(e: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(e.read(4096))["message"])[:200]
    except (ValueError, KeyError, TypeError, OSError):
        return str(e.reason)


def _host(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}"
