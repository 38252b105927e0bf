"""What stands before the message of a log line: rank, clock, level, logger; and the line itself as data.

``[rank3]:`` torchrun, ``[rank: 3]`` Lightning, ``Rank 3: `` by hand, ``[1,2]<stdout>:`` mpirun, ``[1,mpirank:2,algo-1]<stdout>:`` SageMaker, ``[default0]:`` elastic,
``8f0a1b2c [rank=0] || INFO: [123] root:`` Determined, ``(RayTrainWorker pid=12)`` ray; ISO clocks,
``20260101-12:00:00``, ``26-01-31 12:00:00 - INFO:`` (ESRGAN),
glog (``I0101 12:00:00.0``, ``I 0101 12:00:00``), syslog (``Jan 01 12:00:00``), ``01-Jan-2026 12:00:00`` (its year may be missing), ``01/31 12:00:00`` (detectron2), ``01-31 12:00:00.123``, ``[12:00:00]``, seconds since 1970 (UCX),
``[01.31.26|12:00:00]``, ``31.01.26 12:00:00`` and ``[ Sat Jan 31 12:00:00 2026 ]`` (ST-GCN and its heirs).
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from parsers.lazy_regex import lazy_re
from parsers.tables import NO_YEAR

CLOCKS = frozenset(
    {"glog", "syslog", "md", "day", "compact", "short", "dotted", "ctime", "dmy", "points"}
)  # beside ISO's; none says its zone
SUFFIX = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_LEVEL = r"(?:INFO|DEBUG|WARNING|WARN|ERROR|CRITICAL|FATAL|SUCCESS|TRACE|NOTICE)"
_PREFIX = lazy_re(
    r"\s*+(?:\[(?:(?:[Rr]ank|RANK)[ :=#_-]{0,2}|default|R)(?P<rank>\d+)(?:/\d+)?\]:?"
    r"|\(?(?:[Rr]ank|RANK)[ _-]?(?P<process>\d+)(?:/\d+)?\)? ?[:|](?=\s)"
    r"|\[\d+,(?:mpirank:)?(?P<mpi>\d+)(?:,[\w.-]+)?\]<std(?:out|err)>:|\[(?![\w./]+\.\w+:)[A-Za-z][\w.-]*:(?P<local>\d{1,5})\]:?(?= )"
    r"|\([\w. ]*\bpid=\d+(?:, *ip=[\w.]+)?\)"
    r"|\[?(?P<iso>\d{4}[-/]\d\d[-/]\d\d[T _,-]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)"
    r"(?P<zone>Z|[+-]\d\d:?\d\d| UTC)?:?\]?(?!\w)"
    rf"|(?P<short>\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?)(?= - {_LEVEL}\b)"  # ESRGAN and its heirs: the year in two digits
    r"|\[?(?P<glog>[IWEFC] ?\d{4} \d\d:\d\d:\d\d(?:\.\d+)?)(?: +\d+)?(?: +[\w./-]+:\d+)?\]?"
    rf"|(?P<syslog>(?:{'|'.join(MONTHS)}) [ \d]\d \d\d:\d\d:\d\d)"
    rf"|\[?(?P<dmy>\d\d?[-/ ](?:{'|'.join(MONTHS)})(?:[-/ ]\d{{4}})?[ :]\d\d:\d\d:\d\d(?:[.,]\d+)?)(?: [+-]\d{{4}})?\]?(?!\w)"
    rf"|\[?(?P<md>\d\d(?:/\d\d(?:/\d{{4}})?|-\d\d) \d\d:\d\d:\d\d(?:[.,]\d+)?|\d\d/\d\d \[\d\d:\d\d:\d\d(?=\] +{_LEVEL}\b))(?: [\w.]+(?=\]))?\]?:?"
    r"|\[?(?P<unix>1[4-9]\d{8}\.\d+)\]?(?!\w)"
    r"|\[\d\d/\d\d/\d\d \d\d:\d\d:\d\d\](?!\w)"  # rich's, and of others with the day first: no moment is told
    r"|\[?(?P<compact>(?:19|20)\d{6}[-_ T]\d\d:\d\d:\d\d(?:[.,]\d+)?)\]?(?!\w)"
    r"|\[(?P<dotted>\d\d\.\d\d\.\d\d\|\d\d:\d\d:\d\d)\]"  # torchlight (ST-GCN): %m.%d.%y|%X
    r"|\[?(?P<points>\d\d\.\d\d\.(?:\d\d|\d{4}) \d\d:\d\d:\d\d(?:[.,]\d+)?)\]?(?!\w)"  # the day first, as in Germany
    rf"|\[ (?P<ctime>[A-Z][a-z]{{2}} (?:{'|'.join(MONTHS)}) [ \d]\d \d\d:\d\d:\d\d \d{{4}}) \]"  # its heirs: time.asctime()
    rf"|\[[\w.-]+\](?= +(?:{_LEVEL}[ :]|\d{{4}}-\d\d-\d\d ))"  # the thread, as Java's Logback and Log4j write it, or the host (ESPnet)
    rf"|\(\w+:\d+\)(?= {_LEVEL}:)"  # ESPnet: (trainer:714) INFO:
    r"|\[?(?P<day>\d\d:\d\d:\d\d(?:[.,]\d+)?)\]?(?=[ \]-])|\[titan\]"
    rf"|[0-9a-f]{{8}}(?= (?:\[rank=\d+\] )?\|\| )|\|\|(?: +{_LEVEL}: \[\d+\] [\w.]+:)?(?=\s)"
    rf"|\[ *{_LEVEL}\|[^\]]*\]:?|(?:\[ *)?{_LEVEL}\b *\]?(?::\w*:)?|(?<=\t)[\w./-]+:\d+(?=\t)"
    r"|r(?:ank|k)? ?(?P<cell>\d{1,5})(?= +\|)"  # behind a clock or a level: "| r0 | step 20"
    r"|[IWE](?= [\w/]+\.cc:\d+\])"
    r"|\[?[\w./-]*\.(?:py|cc|cpp|cu)(?::\d+)?(?::[\w<>]+)?\]?(?::|(?=\s))"
    r"|\[?(?:__main__|root|[A-Za-z]\w*\.\w[\w.]*|mmengine|mmdet|mmseg|mmcls)\](?=\s*[\[-])"
    r"|(?P<place>[A-Za-z_][\w.]*+:(?:(?:<[A-Za-z_]\w*+>|[A-Za-z_][\w.<>]*+):)?\d+)(?= +- )"  # loguru: __main__:<module>:22 - text
    r"|(?P<name>__main__|root|(?!\S*(?:Error|Exception|Interrupt|Exit|Failed|Expired)\b)[A-Za-z_]+(?:\.[A-Za-z_]\w*)+"
    r"|mm\w+|nanotron)(?= *[-:|])"
    r"|(?P<func>\[[A-Za-z_][\w.]{0,60}:(?:<[A-Za-z_]\w{0,60}>|[A-Za-z_]\w{0,60})(?::\d{1,6})?\])(?=\s)"  # logging's [%(name)s:%(funcName)s]
    rf"|[A-Za-z_][\w.]{{0,60}}: \[ {{0,8}}{_LEVEL}\](?= - )"  # timm's %(name)20s: [%(levelname)8s] - %(message)s
    rf"|[A-Za-z_][^\s\[\]]*(?= - {_LEVEL} - )"  # logging's %(name)s - %(levelname)s - %(message)s
    rf"|-?[A-Za-z_][\w.]*-{_LEVEL}-(?:[A-Za-z_]\w*:)?"  # the same without blanks
    rf"|(?:[-|:]|>>)(?=\s|{_LEVEL}\b))"  # the second for logging's %(asctime)s:%(levelname)s:
)
_DAY_FIRST = lazy_re(r"(\d\d?)[-/ ](\w{3})(?:[-/ ](\d{4}))?[ :](.+)")


class Where(NamedTuple):
    """Where and when something was said: line << 20 | update of a bar within the line, seconds since 1970, rank."""

    place: int
    time: float | None = None
    rank: int | None = None

    @property
    def line(self) -> int:
        return self.place >> 20


class Field(NamedTuple):
    role: str  # metric, step, epoch, epochs, it, total, length (of an epoch), time, rank, skip
    tag: str
    start: int
    end: int


@dataclass
class Line:
    """What one line says; ``fields`` in the order of the text, every number of the line among them."""

    text: str
    fields: list[Field] = field(default_factory=list)
    body: int = 0  # where the text begins behind times, ranks and logger names
    clock: str = ""  # which kind of clock the time is
    mode: str = ""  # val, test, ...: the line speaks of evaluation
    bar: bool = False
    training: bool = False  # a bar over steps of training
    scaled: bool = False  # numbers carry K, M, B or T
    braces: bool = False  # a dict or JSON object
    context: str = ""  # words before a tight key: "final_roundtrip val_loss:3.3"
    counted: bool = False  # its step is a word that may start again with every epoch
    explicit: int = 0  # metrics with ':' or '='

    def has(self, role: str) -> bool:
        return any(f.role == role for f in self.fields)

    def metrics(self) -> list[tuple[str, float]]:
        return [(f.tag, number(self.text[f.start : f.end])) for f in self.fields if f.role == "metric"]

    def value(self, role: str) -> int | None:
        f = next((f for f in self.fields if f.role == role), None)
        return None if f is None else whole(self.text[f.start : f.end])

    def parts(self) -> dict[str, int]:
        """What the line says of its place."""
        return {role: v for role in ("step", "it", "total", "epoch") if (v := self.value(role)) is not None}


def number(text: str) -> float:
    if text[-1:] in SUFFIX:
        return float(text[:-1].replace(",", "")) * SUFFIX[text[-1]]
    return float(text.replace(",", "") if "," in text else text)


def whole(text: str) -> int | None:
    """'00012', '119.0', '1,024' -> int; None for what is not a whole number or too large for a step."""
    try:
        value = number(text)
    except ValueError:
        return None
    return int(value) if value == value and abs(value) < 2**53 and value == int(value) else None


def prefix(text: str) -> Line:
    """Takes ranks, clocks, levels and logger names off the front of a line."""
    line, pos, seen_mark = Line(text), 0, False
    for _ in range(12):
        m = _PREFIX.match(text, pos)
        if (
            m is None
            or m.end() == pos
            or ((m["name"] or m["place"] or m["func"] or m["cell"] or m[0].strip() in "-|:>>") and not seen_mark)
        ):
            break
        kind = m.lastgroup
        if m["iso"] is not None:
            line.fields.append(Field("time", "", *m.span("iso")))
            line.clock = "iso" + (m["zone"] or "").strip()
        elif kind in {"rank", "process", "mpi", "local", "cell"}:
            line.fields.append(Field("rank", "", *m.span(kind)))
        elif kind in CLOCKS | {"unix"} and not line.clock:
            line.fields.append(Field("time", "", *m.span(kind)))
            line.clock = kind
        seen_mark, pos = True, m.end()
    line.body = pos
    return line


_minutes: dict[str, float] = {}


def _minute(text: str, kind: str) -> tuple[str, str]:
    """A clock as year-month-day hour:minute, and its seconds."""
    if kind.startswith("iso"):
        return text[:16], text[17:]
    if kind == "glog":
        day = text[1:].lstrip()
        return f"{NO_YEAR}-{day[:2]}-{day[2:4]} {day[5:10]}", day[11:]
    if kind == "short":
        return f"20{text[:14]}", text[15:]
    if kind == "compact":
        return f"{text[:4]}-{text[4:6]}-{text[6:8]} {text[9:14]}", text[15:]
    if kind == "dotted":
        return f"20{text[6:8]}-{text[:2]}-{text[3:5]} {text[9:14]}", text[15:]
    if kind == "points":
        (day, month, year), clock = text[: text.index(" ")].split("."), text[text.index(" ") + 1 :]
        return f"{year if len(year) == 4 else '20' + year}-{month}-{day} {clock[:5]}", clock[6:]
    if kind == "ctime":
        return f"{text[20:]}-{MONTHS.index(text[4:7]) + 1:02}-{int(text[8:10]):02} {text[11:16]}", text[17:19]
    if kind == "day":
        return f"1970-01-01 {text[:5]}", text[6:]
    if kind == "md":
        said, clock = text[6 : text.index(" ")], text[text.index(" ") :].lstrip(" [")
        return f"{said or NO_YEAR}-{text[:2]}-{text[3:5]} {clock[:5]}", clock[6:]
    if kind == "dmy":
        day, month, said, clock = _DAY_FIRST.fullmatch(text).groups()  # type: ignore[union-attr]  # as _PREFIX found it
        return f"{said or NO_YEAR}-{MONTHS.index(month) + 1:02}-{int(day):02} {clock[:5]}", clock[6:]
    return f"{NO_YEAR}-{MONTHS.index(text[:3]) + 1:02}-{int(text[4:6]):02} {text[7:12]}", text[13:]


def seconds(text: str, kind: str) -> float | None:
    """A line's clock -> seconds since 1970 UTC (a clock without zone is read as UTC); None when it is no date.

    glog (``I0101``), syslog (``Jan 01``), ``01/01`` and ``01-Jan`` name no year: NO_YEAR stands for it. ``12:00:00`` names no
    date: it is one of 1970-01-01.
    """
    try:
        if kind == "unix":
            return float(text)
        minute, rest = _minute(text, kind)
        base = _minutes.get(minute + kind)
        if base is None:
            y, mo, d, h, mi = (int(minute[a:b]) for a, b in ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16)))
            base = datetime.datetime(y, mo, d, h, mi, tzinfo=datetime.UTC).timestamp()
            if zone := re.fullmatch(r"iso([+-])(\d\d):?(\d\d)", kind):
                base -= (1 if zone[1] == "+" else -1) * (int(zone[2]) * 3600 + int(zone[3]) * 60)
            if len(_minutes) > 100_000:
                _minutes.clear()
            _minutes[minute + kind] = base
        return base + (float(rest.replace(",", ".")) if rest else 0.0)
    except (ValueError, IndexError, OverflowError):
        return None
