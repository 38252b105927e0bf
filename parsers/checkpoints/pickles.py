"""An interpreter for pickles that builds data and nothing else: no import, no call, whatever the file says.

The pickle machine has 68 opcodes (pickletools of the standard library documents each). Here GLOBAL only writes down a
name; what a REDUCE, NEWOBJ or BUILD would have called goes to ``parsers.checkpoints.allowed``, which knows how to make
plain values of a few dozen names. Every other name becomes an Opaque: its name, arguments and state, so that tensors
inside are still found, and an entry in ``refused``.

Python's own ``pickle.Unpickler`` with a strict ``find_class`` would not run foreign code either, but a ten-byte file can
make it ask for gigabytes (LONG_BINPUT with a huge index) and it does not say where in the file a name stands.

Odd: memo indices may be any 32-bit number (a dict holds them); a list may hold itself; keys may be unhashable in a hostile
file; text in STRING opcodes is escaped Latin-1; protocol-2 files of Python 2 are still about.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MAX_OPCODES = 10_000_000
MAX_TEXT = 1 << 20  # of a line-ended argument
MAX_LONG = 256  # bytes of an integer


class Unreadable(Exception):
    """The file, or this part of it, cannot be read; the message is the sentence to show."""


@dataclass(frozen=True)
class Name:
    """A global of the pickle: only its name."""

    module: str
    name: str
    at: int = field(compare=False)

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(eq=False)
class Opaque:
    """An object of a class that is not on the list: never made, only described."""

    name: str
    args: tuple[Any, ...] = ()
    state: Any = None
    items: list[Any] = field(default_factory=list)  # appended or set on it: values, or (key, value)


@dataclass(eq=False)
class Mark:
    pass


Build = Callable[[Name, tuple[Any, ...]], Any]  # what REDUCE gives; Refusal where the name is not allowed
State = Callable[[Any, Any], Any]
Persistent = Callable[[Any], Any]

_MARK = Mark()


class Machine:
    """One pickle. ``load`` returns its value; ``refused`` lists the names that were not followed, ``end`` is the byte after STOP."""

    def __init__(self, data: memoryview | bytes, start: int = 0, *, build: Build, set_state: State,
                 persistent: Persistent, allowed: Callable[[Name], bool]) -> None:
        self.data = memoryview(data)
        self.position = self.opcode_at = start
        self.build, self.set_state, self.persistent, self.allowed = build, set_state, persistent, allowed
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.refused: dict[str, int] = {}  # name -> first byte
        self.whole = False  # load() came to the STOP

    @property
    def end(self) -> int:
        return self.position

    def load(self) -> Any:
        """Raises Unreadable for whatever is no whole pickle."""
        handlers = _HANDLERS
        try:
            for _ in range(MAX_OPCODES):
                self.opcode_at = self.position
                code = self.data[self.position]
                self.position += 1
                if code == 0x2E:  # STOP
                    self.whole = True
                    return self.pop()
                handler = handlers.get(code)
                if handler is None:
                    raise Unreadable(f"byte {self.opcode_at}: {code:#04x} is no opcode of a pickle")
                handler(self)
        except IndexError:
            raise Unreadable(f"byte {self.opcode_at}: the pickle ends before its STOP, or takes what was never put there") from None
        except (struct.error, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, MemoryError) as e:
            raise Unreadable(f"byte {self.opcode_at}: damaged pickle ({type(e).__name__}: {e})"[:200]) from None
        raise Unreadable(f"more than {MAX_OPCODES} operations in one pickle")

    def remains(self) -> Any:
        """Of a pickle that broke off: the outermost container, with what waited on the stack to be put into it."""
        while any(x is _MARK for x in self.stack):
            items = self.since_mark()
            target = self.stack[-1] if self.stack else None
            if isinstance(target, dict):
                target.update({key(k): v for k, v in zip(items[::2], items[1::2], strict=False)})
            elif isinstance(target, list):
                target += items
            else:
                self.stack.append(items)
        return next((x for x in self.stack if isinstance(x, (dict, list, Opaque))), None)

    # --- reading arguments

    def take(self, n: int) -> memoryview:
        if n < 0 or self.position + n > len(self.data):
            raise Unreadable(f"byte {self.opcode_at}: {n} bytes are announced, {len(self.data) - self.position} are left")
        chunk = self.data[self.position : self.position + n]
        self.position += n
        return chunk

    def number(self, fmt: str) -> int:
        size = struct.calcsize(fmt)
        (value,) = struct.unpack(fmt, self.take(size))
        return int(value)

    def line(self) -> bytes:
        window = bytes(self.data[self.position : self.position + MAX_TEXT])
        end = window.find(b"\n")
        if end < 0:
            raise Unreadable(f"byte {self.opcode_at}: a line without end")
        self.position += end + 1
        return window[:end]

    # --- the stack

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise Unreadable(f"byte {self.opcode_at}: a mark where a value should be")
        return value

    def since_mark(self) -> list[Any]:
        for i in range(len(self.stack) - 1, -1, -1):
            if self.stack[i] is _MARK:
                items = self.stack[i + 1 :]
                del self.stack[i:]
                return items
        raise Unreadable(f"byte {self.opcode_at}: no mark on the stack")

    def top(self) -> Any:
        value = self.stack[-1]
        if value is _MARK:
            raise Unreadable(f"byte {self.opcode_at}: a mark where a value should be")
        return value

    # --- objects

    def refuse(self, what: str, at: int) -> None:
        if len(self.refused) < 1000:
            self.refused.setdefault(what[:200], at)

    def name(self, module: Any, name: Any) -> Name:
        if not isinstance(module, str) or not isinstance(name, str):
            raise Unreadable(f"byte {self.opcode_at}: a global whose name is no text")
        found = Name(module[:200], name[:200], self.opcode_at)
        if not self.allowed(found):
            self.refuse(str(found), self.opcode_at)
        return found

    def call(self, function: Any, args: Any) -> Any:
        """What REDUCE or NEWOBJ leaves on the stack: a plain value, or an Opaque."""
        args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
        if isinstance(function, Opaque):  # calling what a refused call would have returned
            return Opaque(function.name, args)
        if not isinstance(function, Name):
            self.refuse(f"a call of {type(function).__name__}", self.opcode_at)
            return Opaque("?", args)
        try:
            return self.build(function, args)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError):
            return Opaque(str(function), args)  # right name, wrong arguments

    def put_items(self, pairs: list[Any]) -> None:
        target = self.top()
        if isinstance(target, dict):
            for k, v in zip(pairs[::2], pairs[1::2], strict=True):
                target[key(k)] = v
        elif isinstance(target, Opaque):
            target.items += zip(pairs[::2], pairs[1::2], strict=True)
        else:
            raise Unreadable(f"byte {self.opcode_at}: items for a {type(target).__name__}")

    def append_all(self, values: list[Any]) -> None:
        target = self.top()
        if isinstance(target, list):
            target += values
        elif isinstance(target, set):
            target.update(key(v) for v in values)
        elif isinstance(target, Opaque):
            target.items += values
        else:
            raise Unreadable(f"byte {self.opcode_at}: values for a {type(target).__name__}")

    def set_memo(self, index: int) -> None:
        self.memo[index] = self.top()


def key(value: Any) -> Any:
    """A dict key or set member: what cannot be hashed, or could be made to collide by design, goes in as text."""
    if isinstance(value, (str, bool, bytes, float, Name, Opaque)) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) < 1 << 60 else hex(value)
    if isinstance(value, tuple) and len(value) <= 8 and all(isinstance(v, (str, int, float)) for v in value):
        return tuple(key(v) for v in value)
    return f"<{type(value).__name__} {id(value):x}>"


def _long(data: bytes | memoryview) -> Any:
    return Opaque("a very long integer") if len(data) > MAX_LONG else int.from_bytes(data, "little", signed=True)


def _text(m: Machine, n: int) -> str:
    return str(m.take(n), "utf-8", "surrogatepass")


def _int_line(m: Machine) -> Any:
    line = m.line()
    return line == b"01" if line in (b"00", b"01") else int(line)


def _bytes(m: Machine, n: int) -> bytes | memoryview:
    """Small ones as they are; large ones stay where they lie, so that no file costs its size in memory."""
    chunk = m.take(n)
    return bytes(chunk) if n < 65536 else chunk


def _string_line(m: Machine) -> str:
    line = m.line().strip()
    if len(line) < 2 or line[0] != line[-1] or line[:1] not in (b"'", b'"'):
        raise ValueError("a string without quotes")
    return codecs.escape_decode(line[1:-1])[0].decode("latin-1")


def _tuple(m: Machine, n: int) -> None:
    items = [m.pop() for _ in range(n)]
    m.stack.append(tuple(reversed(items)))


def _global(m: Machine) -> Name:
    return m.name(m.line().decode("utf-8"), m.line().decode("utf-8"))


def _stack_global(m: Machine) -> Name:
    name, module = m.pop(), m.pop()
    return m.name(module, name)


def _reduce(m: Machine) -> Any:
    args, function = m.pop(), m.pop()
    return m.call(function, args)


def _newobj_ex(m: Machine) -> Any:
    kwargs, args, cls = m.pop(), m.pop(), m.pop()
    made = m.call(cls, args)
    if isinstance(made, Opaque) and kwargs:
        made.items.append(("keywords", kwargs))
    return made


def _inst(m: Machine) -> Any:
    name = _global(m)
    return m.call(name, tuple(m.since_mark()))


def _obj(m: Machine) -> Any:
    items = m.since_mark()
    return m.call(items[0], tuple(items[1:]))


def _build(m: Machine) -> None:
    state, target = m.pop(), m.pop()
    m.stack.append(m.set_state(target, state))


def _dict(m: Machine) -> Any:
    pairs = m.since_mark()
    return {key(k): v for k, v in zip(pairs[::2], pairs[1::2], strict=True)}


def _setitem(m: Machine) -> None:
    value, k = m.pop(), m.pop()
    m.put_items([k, value])


def _extension(m: Machine, fmt: str) -> Any:
    code = m.number(fmt)
    m.refuse(f"extension code {code}", m.opcode_at)
    return Opaque(f"extension {code}")


def _buffer(m: Machine) -> Any:
    m.refuse("an out-of-band buffer", m.opcode_at)
    return Opaque("out-of-band buffer")


def _pushing(f: Callable[[Machine], Any]) -> Callable[[Machine], None]:
    def handler(m: Machine) -> None:
        m.stack.append(f(m))

    return handler


_PUSH: dict[bytes, Callable[[Machine], Any]] = {
    b"(": lambda m: _MARK, b"N": lambda m: None, b"\x88": lambda m: True, b"\x89": lambda m: False,
    b"]": lambda m: [], b"}": lambda m: {}, b")": lambda m: (), b"\x8f": lambda m: set(),
    b"K": lambda m: m.number("<B"), b"M": lambda m: m.number("<H"), b"J": lambda m: m.number("<i"),
    b"G": lambda m: struct.unpack(">d", m.take(8))[0], b"I": _int_line, b"F": lambda m: float(m.line()),
    b"L": lambda m: int(m.line().rstrip(b"L")),
    b"\x8a": lambda m: _long(m.take(m.number("<B"))), b"\x8b": lambda m: _long(m.take(m.number("<i"))),
    b"X": lambda m: _text(m, m.number("<I")), b"\x8c": lambda m: _text(m, m.number("<B")), b"\x8d": lambda m: _text(m, m.number("<Q")),
    b"V": lambda m: m.line().decode("raw-unicode-escape", "replace"), b"S": _string_line,
    b"U": lambda m: str(m.take(m.number("<B")), "latin-1"), b"T": lambda m: str(m.take(m.number("<i")), "latin-1"),
    b"C": lambda m: _bytes(m, m.number("<B")), b"B": lambda m: _bytes(m, m.number("<I")),
    b"\x8e": lambda m: _bytes(m, m.number("<Q")), b"\x96": lambda m: _bytes(m, m.number("<Q")),
    b"t": lambda m: tuple(m.since_mark()), b"l": lambda m: m.since_mark(), b"d": _dict,
    b"\x91": lambda m: frozenset(key(v) for v in m.since_mark()),
    b"c": _global, b"\x93": _stack_global, b"R": _reduce, b"\x81": _reduce, b"\x92": _newobj_ex, b"i": _inst, b"o": _obj,
    b"h": lambda m: m.memo[m.number("<B")], b"j": lambda m: m.memo[m.number("<I")], b"g": lambda m: m.memo[int(m.line())],
    b"2": lambda m: m.top(), b"P": lambda m: m.persistent(m.line().decode("ascii", "replace")), b"Q": lambda m: m.persistent(m.pop()),
    b"\x82": lambda m: _extension(m, "<B"), b"\x83": lambda m: _extension(m, "<H"), b"\x84": lambda m: _extension(m, "<i"),
    b"\x97": _buffer,
}  # fmt: skip
_DO: dict[bytes, Callable[[Machine], Any]] = {
    b"\x80": lambda m: m.take(1), b"\x95": lambda m: m.take(8), b"\x98": lambda m: None,
    b"0": lambda m: m.stack.pop(), b"1": lambda m: m.since_mark(),
    b"\x85": lambda m: _tuple(m, 1), b"\x86": lambda m: _tuple(m, 2), b"\x87": lambda m: _tuple(m, 3),
    b"a": lambda m: m.append_all([m.pop()]), b"e": lambda m: m.append_all(m.since_mark()), b"\x90": lambda m: m.append_all(m.since_mark()),
    b"s": _setitem, b"u": lambda m: m.put_items(m.since_mark()), b"b": _build,
    b"p": lambda m: m.set_memo(int(m.line())), b"q": lambda m: m.set_memo(m.number("<B")), b"r": lambda m: m.set_memo(m.number("<I")),
    b"\x94": lambda m: m.set_memo(len(m.memo)),
}  # fmt: skip
_HANDLERS: dict[int, Callable[[Machine], Any]] = {k[0]: _pushing(f) for k, f in _PUSH.items()} | {k[0]: f for k, f in _DO.items()}
