"""Secrets that commands and the files of other programs take without a telling key: ``curl -u``, ``mysql -p``, ``.pgpass``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.lazy_regex import lazy_re
from parsers.secrets.values import Span, is_harmless, looks_random

HINTS = (
    *(f"{before}-{flag}" for before in (" ", "'", '"') for flag in ("p", "P", "u", "U")), " -a ", " -w ", " -k ", "-stdin", "sudo -S",
    "'-a'", '"-a"', "'-w'", '"-w"', "--user", "--proxy-user", "pass:", "earer ", "EARER ", ":543", ":*:", ":6432:",
)  # fmt: skip
_BEFORE = 300  # characters in which the command stands that a flag belongs to

_FLAG = lazy_re(
    r"(?<![\w\-])(?P<flag>-[pPawk]|-[uU]|--user|--proxy-user)(?P<gap>['\"]?[ \t,=]{0,6})(?P<quote>['\"]?)(?P<value>[^\s'\"]{1,300})"
)
_COMMANDS = {
    "-p": lazy_re(
        r"\b(?:sshpass|mysql\w*|mariadb[\w\-]*|mongo\w*|influx|htpasswd|7z\w*|rar|unrar|login)\b|(?<![\w\-])(?:-u|--user(?:name)?)[ \t'\",=]"
    ),
    "-P": lazy_re(r"\b(?:unzip|zip|plink|pscp|sqlcmd|bcp)\b"),
    "-a": lazy_re(r"\b(?:redis-cli|redis-benchmark)\b"),
    "-k": lazy_re(r"\bopenssl\b"),
    "-w": lazy_re(r"\bldap\w{3,10}\b"),
    "-u": lazy_re(r"\b(?:curl|wget|https?|xh|ftp|lftp|smbclient|rclone)\b"),
}
_ATTACHED = lazy_re(r"\b(?:mysql\w*|mariadb[\w\-]*|sshpass|7z\w*|rar|unrar)\b")  # -pSECRET in one word
_PASS = lazy_re(r"(?<!\w)-?(?:passin|passout|pass|k)\s{1,4}pass:(\S{1,300})")  # openssl
_BEARER = lazy_re(r"(?i)\bbearer[ \t]{1,8}([\w\-.=+/~]{8,})")
_PIPED = lazy_re(
    r"\b(?:echo|printf)\s{1,4}(?:-n\s{1,4})?['\"]?([^\s'\"|]{1,200})['\"]?\s{0,4}\|[^\n|]{0,200}?(?:-stdin|sudo -S|chpasswd|passwd)"
)
_PGPASS = lazy_re(r"(?m)(?<!\S)[^\s:]{1,200}:(?:543\d|6432|\*):[^\s:]{1,200}:[^\s:]{1,200}:(\S{1,300})$")


def given(text: str) -> Iterator[Span]:
    """Where such secrets are in a text."""
    yield from (span for m in _FLAG.finditer(text) if (span := _of_flag(text, m)) is not None)
    yield from (m.span(1) for m in _PASS.finditer(text) if not is_harmless(m[1], typed=True))
    yield from (m.span(1) for m in _PIPED.finditer(text) if not is_harmless(m[1], typed=True))
    yield from (m.span(1) for m in _PGPASS.finditer(text) if not is_harmless(m[1]))
    yield from (m.span(1) for m in _BEARER.finditer(text) if looks_random(m[1].replace("/", "")))


def _of_flag(text: str, m: re.Match[str]) -> Span | None:
    before = text[max(0, m.start() - _BEFORE) : m.start()]
    before = before[before.rfind("\n") + 1 :]
    flag = "-u" if m["flag"].lower() in ("-u", "--user", "--proxy-user") else m["flag"]
    start, end = m.span("value")
    if m["quote"]:
        closing = text.find(m["quote"], end, end + _BEFORE)
        end = closing if closing >= 0 else end
    if m["gap"].strip("'\"") == "" and not (flag == "-p" and _ATTACHED.search(before)):
        return None
    if flag == "-u":
        user, colon, _ = text[start:end].partition(":")
        start += len(user) + len(colon)
        if not colon or not _COMMANDS["-u"].search(before):
            return None
    elif not _COMMANDS[flag].search(before) and not (flag == "-p" and _made_up(text[start:end])):
        return None
    return None if is_harmless(text[start:end]) and not (flag == "-p" and _ATTACHED.search(before)) else (start, end)


def _made_up(value: str) -> bool:
    """`-p` is a partition, a port or a path, too: of an unknown command only what nobody calls one of those."""
    return looks_random(value) and any(c.isupper() for c in value) and any(c.islower() for c in value) and any(c.isdigit() for c in value)
