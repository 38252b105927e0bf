"""The opcodes of pickle protocols 0 to 5, each as what it does to a Machine that only builds data.

pickletools of the standard library documents them. Integers of more than 256 bytes and buffers from elsewhere become
labels; large byte strings stay where they lie in the file.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable
from typing import Any

from parsers.checkpoints.pickles import MARK, Machine, Name, Opaque, key
from parsers.checkpoints.unreadable import Unreadable, reason

MAX_OPCODES = 10_000_000
MAX_LONG = 256  # bytes of an integer


def load(m: Machine) -> Any:
    """The value of a pickle. Raises Unreadable for whatever is no whole one."""
    try:
        for _ in range(MAX_OPCODES):
            m.opcode_at = m.position
            code = m.data[m.position]
            m.position += 1
            if code == 0x2E:  # STOP
                m.whole = True
                return m.pop()
            _HANDLERS[code](m)
    except IndexError:
        raise Unreadable(f"byte {m.opcode_at}: the pickle ends before its STOP, or takes what was never put there") from None
    except (struct.error, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, MemoryError) as e:
        raise Unreadable(f"byte {m.opcode_at}: damaged pickle ({reason(e)})"[:200]) from None
    raise Unreadable(f"more than {MAX_OPCODES} operations in one pickle")


def _long(data: bytes | memoryview) -> Any:
    return Opaque("a very long integer") if len(data) > MAX_LONG else int.from_bytes(data, "little", signed=True)


def _text(m: Machine, n: int) -> str:
    found: str = m.pushed(str(m.take(n), "utf-8", "surrogatepass"))
    return found


def _int_line(m: Machine) -> Any:
    line = m.line()
    return line == b"01" if line in (b"00", b"01") else int(line)


def _bytes(m: Machine, n: int) -> bytes | memoryview:
    """Small ones as they are; large ones stay where they lie, so that no file costs its size in memory."""
    chunk = m.take(n)
    found: bytes | memoryview = m.pushed(bytes(chunk) if n < 65536 else chunk)
    return found


def _string_line(m: Machine) -> str:
    line = m.line().strip()
    if len(line) < 2 or line[0] != line[-1] or line[:1] not in (b"'", b'"'):
        raise ValueError("a string without quotes")
    return codecs.escape_decode(line[1:-1])[0].decode("latin-1")


def _tuple(m: Machine, n: int) -> None:
    items = m.stack[-n:]
    if len(items) < n or MARK in items:
        raise Unreadable(f"byte {m.opcode_at}: a mark or nothing where a value should be")
    m.stack[-n:] = [tuple(items)]


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
    m.spend(state if isinstance(state, tuple) else (state,))
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


def _no_opcode(m: Machine) -> None:
    raise Unreadable(f"byte {m.opcode_at}: {m.data[m.opcode_at]:#04x} is no opcode of a pickle")


_PUSH: dict[bytes, Callable[[Machine], Any]] = {
    b"\x8f": lambda m: set(),
    b"G": lambda m: struct.unpack(">d", m.take(8))[0], b"I": _int_line, b"F": lambda m: float(m.line()),
    b"L": lambda m: int(m.line().rstrip(b"L")),
    b"\x8a": lambda m: _long(m.take(m.number("<B"))), b"\x8b": lambda m: _long(m.take(m.number("<i"))),
    b"X": lambda m: _text(m, m.number("<I")), b"\x8c": lambda m: _text(m, m.number("<B")), b"\x8d": lambda m: _text(m, m.number("<Q")),
    b"V": lambda m: m.pushed(m.line().decode("raw-unicode-escape", "replace")), b"S": lambda m: m.pushed(_string_line(m)),
    b"U": lambda m: m.pushed(str(m.take(m.number("<B")), "latin-1")), b"T": lambda m: m.pushed(str(m.take(m.number("<i")), "latin-1")),
    b"C": lambda m: _bytes(m, m.number("<B")), b"B": lambda m: _bytes(m, m.number("<I")),
    b"\x8e": lambda m: _bytes(m, m.number("<Q")), b"\x96": lambda m: _bytes(m, m.number("<Q")),
    b"t": lambda m: tuple(m.since_mark()), b"l": lambda m: m.since_mark(), b"d": _dict,
    b"\x91": lambda m: frozenset(key(v) for v in m.since_mark()),
    b"c": _global, b"\x93": _stack_global, b"R": _reduce, b"\x81": _reduce, b"\x92": _newobj_ex, b"i": _inst, b"o": _obj,
    b"K": lambda m: m.number("<B"), b"M": lambda m: m.number("<H"), b"J": lambda m: m.number("<i"),
    b"g": lambda m: m.memo[int(m.line())], b"h": lambda m: m.memo[m.number("<B")], b"j": lambda m: m.memo[m.number("<I")],
    b"2": lambda m: m.top(), b"P": lambda m: m.persistent(m.line().decode("ascii", "replace")), b"Q": lambda m: m.persistent(m.pop()),
    b"\x82": lambda m: _extension(m, "<B"), b"\x83": lambda m: _extension(m, "<H"), b"\x84": lambda m: _extension(m, "<i"),
    b"\x97": _buffer,
}  # fmt: skip
_DO: dict[bytes, Callable[[Machine], Any]] = {
    b"(": lambda m: m.stack.append(MARK), b"N": lambda m: m.stack.append(None), b"\x88": lambda m: m.stack.append(True),
    b"\x89": lambda m: m.stack.append(False), b"]": lambda m: m.stack.append([]), b"}": lambda m: m.stack.append({}), b")": lambda m: m.stack.append(()),
    b"\x80": lambda m: m.take(1), b"\x95": lambda m: m.take(8), b"\x98": lambda m: None,
    b"0": lambda m: m.stack.pop(), b"1": lambda m: m.since_mark(),
    b"\x85": lambda m: _tuple(m, 1), b"\x86": lambda m: _tuple(m, 2), b"\x87": lambda m: _tuple(m, 3),
    b"a": lambda m: m.append_all([m.pop()]), b"e": lambda m: m.append_all(m.since_mark()), b"\x90": lambda m: m.append_all(m.since_mark()),
    b"s": _setitem, b"u": lambda m: m.put_items(m.since_mark()), b"b": _build,
    b"p": lambda m: m.set_memo(int(m.line())), b"q": lambda m: m.set_memo(m.number("<B")), b"r": lambda m: m.set_memo(m.number("<I")),
    b"\x94": lambda m: m.set_memo(len(m.memo)),
}  # fmt: skip
_BY_CODE = {k: _pushing(f) for k, f in _PUSH.items()} | _DO
_HANDLERS = tuple(_BY_CODE.get(bytes((code,)), _no_opcode) for code in range(256))
