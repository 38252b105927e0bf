"""What stands in for each name: `<host-1>`, `<user-2>`, numbered as they are met; the same name always has the same one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from parsers.lazy_regex import lazy_re

KINDS = ("host", "nodes", "user", "mail", "ip", "mac", "gpu", "serial")
GIVEN = lazy_re(rf"<(?P<kind>{'|'.join(KINDS)})-(?:[a-z]\d+\.)?(?P<n>\d+)>|<path>")
WORD = lazy_re(r"[^\W_]+")


@dataclass
class Pseudonyms:
    """The names that are known, and the pseudonyms given so far.

    ``part`` marks those that a part of a larger document gives by itself (a page of an audit, drawn in another process), so that
    they cannot be those of another part.
    """

    part: str = ""
    roots: list[str] = field(default_factory=list)  # folders of runs: what lies below stays readable relative to them
    accounts: set[str] = field(default_factory=set)  # user@host that is no mail address
    names: dict[str, str] = field(default_factory=dict)  # a known name, in lower case -> its kind
    given: dict[tuple[str, str], str] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)  # kind -> the last number

    def __post_init__(self) -> None:
        self.by_words: dict[tuple[str, ...], list[str]] = {}
        for name in self.names:
            self._index(name)

    def know(self, kind: str, name: str) -> None:
        folded = name.casefold()
        if folded not in self.names:
            self.names[folded] = kind
            self._index(folded)

    def _index(self, name: str) -> None:
        self.by_words.setdefault(tuple(WORD.findall(name)), []).append(name)

    def of(self, kind: str, name: str) -> str:
        """The pseudonym of a name, given now where it has none. A name that is known keeps the kind that it is known by."""
        folded = name.casefold()
        key = (self.names.get(folded, kind), folded)
        if key not in self.given:
            n = self.taken[key[0]] = self.taken.get(key[0], 0) + 1
            self.given[key] = f"<{key[0]}-{self.part}{n}>"
        return self.given[key]

    def within(self, text: str) -> list[str]:
        """The known names that a text holds as whole words, the longest first, since one may hold another.

        An audit knows thousands of names, and a text holds few: runs of words are looked up, not names searched for.
        """
        words = WORD.findall(text.casefold())
        lengths = {len(key) for key in self.by_words if len(key) <= len(words)} if len(self.by_words) < 50 else range(1, 12)
        parts = {tuple(words[i : i + n]) for n in lengths for i in range(len(words) - n + 1)}
        return sorted((name for part in parts & self.by_words.keys() for name in self.by_words[part]), key=lambda name: (-len(name), name))

    def reserve(self, texts: Iterable[str]) -> None:
        """Pseudonyms that a document holds already (it was redacted before) are not given again."""
        for text in texts:
            for m in GIVEN.finditer(text) if "<" in text else ():
                if m["kind"]:
                    self.taken[m["kind"]] = max(self.taken.get(m["kind"], 0), int(m["n"]))
