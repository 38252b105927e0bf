"""Damaged lines of a file, few enough to be told: a helper of parsers, no parser."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from parsers.tables import Gap

_MOST, _MOST_HELD = 100, 5000


class GapList:
    """Neighbouring lines with the same damage are one gap; a file that is nothing but bad lines does not make a million."""

    def __init__(self) -> None:
        self._gaps: list[tuple[int, int, str, int | None, str]] = []  # first line, last line, what, lost, tag

    def add(self, line: int, what: str, lost: int | None, tag: str = "") -> None:
        """``lost`` records, None where nobody knows. ``tag``: the damage is one only if the column is one of numbers."""
        if self._gaps:
            first, last, known, before, its_tag = self._gaps[-1]
            if (known == what and line <= last + 1) or len(self._gaps) >= _MOST_HELD:
                total = lost if before is None else before + (lost or 0)
                self._gaps[-1] = (first, line, known, total, its_tag)
                return
        self._gaps.append((line, line, what, lost, tag))

    def told(self, numeric: Collection[str] = ()) -> Iterator[Gap]:
        damaged = [g for g in self._gaps if not g[4] or g[4] in numeric]
        for first, last, what, lost, _ in damaged[:_MOST]:
            yield Gap(f"line {first}", what if first == last else f"{what} (to line {last})", lost)
        if rest := damaged[_MOST:]:
            yield Gap(f"line {rest[0][0]}", "more damaged lines", sum(lost or 0 for _, _, _, lost, _ in rest))
