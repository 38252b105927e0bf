"""Lines that each launch prints anew, in the same words with another number: ``optimizer AdamW lr 0.001, batch 64``, then ``..., batch 16``.

Whatever such a line says in prose, what differs was set otherwise. Only lines from before the first measurement are kept, and only where one comes
again at a restart and differs do its numbers become settings, those of the first launch at their own place. What a loop prints of each of its rounds is none.
"""

from __future__ import annotations

from parsers.console_format.printed_settings import value_of
from parsers.lazy_regex import lazy_re

_MOST_LINES, _MOST_TEXT = 200, 400  # lines that are kept, and their characters (bounds)
_WORDS = 3  # in front of a number, that name it
_SEPARATED = lazy_re(r"[^\s|,;=]+|[|,;=]")
_ENDS = ",;:()[]{}'\"="
# Places, moments, addresses and durations differ between any two launches, and so does where each of them begins.
_ELSEWHERE = lazy_re(r"[/\\@\[]|\d:\d|0x|\.(?:pth?|ckpt|log|bin|json|npz|txt)\b|^\d{4}-\d\d|(?i:\d(?:ms|s|m|h|min|sec|secs)\b)")
_OF_A_LAUNCH = lazy_re(
    r"(?i)\b(?:step|steps|epoch|epochs|iter|iteration|pid|port|attempt|restart|job|task|seconds?|took|time|elapsed|free|used|memory)\b"
)

Setting = tuple[str, object, int]


class RetoldLines:
    """``feed`` takes each line that measures nothing, ``launch`` is told of each line that ends a launch or begins one. ``since``: the line that
    measured last; a line that is told again belongs to a new launch where another line says so between that one and the next."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, ...], tuple[int, list[str]]] = {}
        self._begin: set[str] = set()  # their first words: most lines begin otherwise
        self._launch = self._begun = -1  # the last line that said so, that one begins
        self._held: list[tuple[int, list[Setting]]] = []  # what lines told again before one did

    def feed(self, n: int, body: str, started: bool, since: int) -> list[Setting]:
        """The settings that line ``n`` gives another value than the line of the launch before did, and those of that line."""
        begins = _SEPARATED.search(body)
        if (
            begins is None
            or len(body) > _MOST_TEXT
            or (started and _form(begins[0]) not in self._begin)
            or not any(c.isdigit() for c in body)
        ):
            return []
        words = _SEPARATED.findall(body)
        form = tuple(map(_form, words))
        if not started:
            if len(self._first) < _MOST_LINES:
                self._first[form] = n, words
                self._begin.add(form[0])
            return []
        if form not in self._first or self._first[form][1] == words:
            return []
        at, before = self._first[form]
        self._first[form] = n, words
        found = _both(form, before, words, at, n)
        if self._launch > since:
            return found
        if self._held and self._held[-1][0] <= since:  # what was measured since then belongs to the launch before
            self._held.clear()
        self._held.append((n, found))
        return []

    def begun(self, since: int) -> bool:
        """Whether a line said that a launch begins, and nothing was measured behind it."""
        return self._begun > since

    def launch(self, n: int, since: int, *, begins: bool) -> list[Setting]:
        """What was told again since the last measurement. ``begins``: the line begins a launch, else it ends one."""
        self._begun = n if begins else self._begun
        self._launch, held, self._held = n, self._held, []
        return [x for at, found in held for x in found if at > since]


def _form(word: str) -> str:
    """A word as all launches print it; a number in brackets names none (``charset (12): 0123``)."""
    return ("" if word[0] == "(" else "#") if any(c.isdigit() for c in word) else word


def _both(form: tuple[str, ...], before: list[str], words: list[str], at: int, n: int) -> list[Setting]:
    """The settings of both lines; nothing where none differs."""
    found: list[Setting] = []
    for i, (old, new) in enumerate(zip(before, words, strict=True)):
        name = _name(form[:i])
        if form[i] == "#" and name and not _ELSEWHERE.search(old) and not _ELSEWHERE.search(new):
            found += [(name, value_of(old.strip(_ENDS)), at), (name, value_of(new.strip(_ENDS)), n)]
    return found if any(a[1] != b[1] for a, b in zip(found[::2], found[1::2], strict=True)) else []


def _name(before: tuple[str, ...]) -> str:
    """The words right in front of a number, back to a mark or the number before it; nothing for what counts or times a launch."""
    words: list[str] = []
    for w in reversed(before[-_WORDS:]):
        if w in {"#", "|", ",", ";"}:
            break
        words.insert(0, w.strip(_ENDS))
    name = " ".join(w for w in words if w)
    return "" if _OF_A_LAUNCH.search(name) else name
