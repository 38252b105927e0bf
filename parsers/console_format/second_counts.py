"""The second count of a line that counts in two ways: ``iter 5/110 step 3840 return 21.3``. This log goes by the first; another file may go by the second."""

from __future__ import annotations

from parsers.console_format.line_prefix import Line, whole
from parsers.records import vocabulary


def put_second_counts(line: Line) -> None:
    """Makes a metric of a step that stands beside the one that the line goes by."""
    if line.bar or line.mode or not line.has("metric") or not (line.has("step") or line.has("it")):
        return
    taken = {f.tag for f in line.fields if f.role in {"step", "it"}}
    for i, f in enumerate(line.fields):
        if (
            f.role == "skip"
            and f.tag not in taken
            and vocabulary.plain(f.tag) in vocabulary.STEP
            and whole(line.text[f.start : f.end]) is not None
        ):
            line.fields[i] = f._replace(role="metric")
            taken.add(f.tag)  # of a fraction the count, not the total behind it
