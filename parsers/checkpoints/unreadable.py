"""The sentence for what cannot be read."""

from __future__ import annotations

import json


class Unreadable(Exception):
    """The file, or this part of it, cannot be read; the message is the sentence to show."""


def reason(e: Exception) -> str:
    """What an error of Python's own says of the data, without the names of its classes and settings."""
    if isinstance(e, json.JSONDecodeError):
        return f"{e.msg[:1].lower()}{e.msg[1:]} at character {e.pos}"
    if isinstance(e, RecursionError):
        return "nested too deeply"
    if isinstance(e, MemoryError):
        return "more than fits into memory"
    if "integer string conversion" in str(e):
        return "an integer of thousands of digits"
    return str(e) or "what is there does not go together"
