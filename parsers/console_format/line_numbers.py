"""Reads one console line: which of its numbers are metrics, under which names, and which say its step.

One scan serves every framework instead of a regex for each: a number belongs to the words before it, back to the last
separator (``|``, ``,``, bracket, two spaces, the number before). That reads ``lm loss: 2.3E+00 |``,
``loss 4.32 (4.56)``, ``step:1/1480 train_loss:7.9`` and ``{'loss': '2.3'}`` alike. Frameworks appear only where they differ from this:

- ``Epoch(train) [9][100/270]`` (mmengine), ``Train: 3 [ 100/1251 (8%)]`` (timm), ``1|600|Loss: 2.3`` (torchtune),
  ``s:10 tel:3.2`` (llm.c: test loss; ``trl`` train loss).
- A line that opens with a word such as ``validate`` or ``Test:`` gives that word to all of its tags, a label within the line to those
  behind it (`line_labels`), because the tag alone (``loss``) would be taken for the training loss.
- ``[3/25][50/1583]`` in front is the epoch and its iteration (the PyTorch DCGAN example).
- A number in brackets behind a metric is its running mean (AverageMeter): tag ``Loss (avg)``.

A line that was understood becomes a `Shape`: a regex with the line's own words, which reads all later lines like it.
Facts: line formats of 34 frameworks (Megatron-LM training.py, torchtitan components/metrics.py, ...), each in the tests by a line of its form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from parsers.console_format.grammars import EVAL, NUM, ON_SET, PREPARES, STRONG, VOCABULARY, first_of_several, is_vector, key_of, role_of
from parsers.console_format.line_keys import between_marks, is_rate, named, set_apart
from parsers.console_format.line_labels import mode_of, put_groups, put_labels
from parsers.console_format.line_places import put_places
from parsers.console_format.line_prefix import MONTHS, SUFFIX, Field, Line, prefix, whole
from parsers.console_format.line_units import UNIT, closes_with_seconds, in_several_units, only_speed, speed, with_unit
from parsers.console_format.line_vectors import put_vectors
from parsers.console_format.no_values import is_of_name, is_word
from parsers.console_format.second_counts import put_second_counts
from parsers.lazy_regex import lazy_re
from parsers.records import vocabulary

_TOKEN = lazy_re(
    rf"(?P<date>(?<!\w)\d{{4}}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?)?"
    rf"|(?<!\w)(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?:{'|'.join(MONTHS)}) {{1,2}}\d{{1,2}} \d\d:\d\d:\d\d(?: [A-Z]{{3,4}})? \d{{4}})"  # ctime
    r"|(?P<clock>(?<![\w.])\d+:\d\d(?::\d\d){0,3}(?:\.\d+)?(?![\w:]))"
    r"|(?P<frac>(?<![\w.@#+-])(?P<it>\d+)(?:\.0)? */ *(?P<total>\d+)(?![\w/]|\.\d))"
    rf"|(?P<avg>(?<!float64)(?<!float32)(?<!tensor)\( *(?P<mean>{NUM}) *%?\))"
    rf"|(?P<num>(?<![\w.@#+-])(?>{NUM}))(?P<unit>{UNIT})?(?!\w|\.\d|-\d)"
)
_BAR = lazy_re(r"%(\|[^|]*\|)")
_TRAINS = lazy_re(
    r"(?i)\W*(?:(?:(?!val|test|eval)[\w-]{1,20}+ )?train\w*(?: progress)?\W*)?\d+%\|[^|]*\|.*(?:(?:it|step|batch|iter)/s|s/(?:it|step|batch|iter)|\?it)\b"
)  # preprocessing names itself
_DRAWN = lazy_re(r"\[[=>.#-]+ +$")  # the drawn part of a bar that writes its count in its middle (pytorch-cifar's progress_bar)
_LLM_C = {"tel": "test loss", "trl": "train loss", "eval": "hellaswag acc"}
SKIP = lazy_re(r"(?i)^(?:eta|v_num|remaining(?: time)?|eta_seconds|pid|seed|port|line|ppo_ep|micro_?step|rank|is less than current step)$")
_TRAINING = {"train", "training", *EVAL}
_OF_SET = lazy_re(rf"(?i)^(?:train|training|{'|'.join(EVAL)})\s+(?=[A-Za-z])")  # "dev xent"
_COUNTED = lazy_re(r"(?i)token|smpl|sample|episode|frame")  # things that loggers count in thousands
_LETTER = lazy_re(r"[^\W\d_]|∇")
_MOST_NUMBERS = 1000  # a line of more is a printed tensor, not a report
Token = tuple[re.Match[str], str]  # a number, and the text since the one before


def read_line(text: str) -> Line:
    """All numbers of a line with their roles. Tags are the line's own words; the caller decides which to believe."""
    line = prefix(text)
    body = text[line.body :]
    line.bar = "%|" in body or "it [" in body
    line.training = line.bar and _TRAINS.match(body) is not None
    line.braces = body.lstrip(" |>-").startswith("{") or "{'" in body or '{"' in body
    line.mode = mode_of(body)
    scan = _Scan(line, _tokens(line))
    for i in range(len(scan.tokens)):
        scan.take(i)
    put_places(line, body, scan.found)
    if only_speed(line) or (line.bar and PREPARES.search(body) and not any(STRONG.search(t) for t, _ in line.metrics())):
        line.fields = [f._replace(role="skip") if f.role not in {"time", "rank"} else f for f in line.fields]
    put_second_counts(line)
    put_groups(line)
    put_vectors(line)
    put_labels(line)
    return line


def _tokens(line: Line) -> list[Token]:
    text, end, found = line.text, line.body, list[Token]()
    drawn = _BAR.search(text) if line.bar else None
    for m in _TOKEN.finditer(text, line.body):
        if drawn is not None and drawn.start(1) <= m.start() < drawn.end(1):
            continue  # tqdm's ASCII bars are drawn with digits
        gap = text[max(end, m.start() - 160) : m.start()]
        if is_word(m, gap) or is_of_name(m, gap):
            continue
        found.append((m, gap))
        end = m.end()
        if len(found) > _MOST_NUMBERS:
            break
    return found


@dataclass
class _Scan:
    """A line while its numbers are taken one by one."""

    line: Line
    tokens: list[Token]
    found: dict[str, int] = field(default_factory=dict)  # "step", "epoch", "eval" -> the field that says it
    previous: str = ""  # tag of the metric just before, for its bracketed mean

    def __post_init__(self) -> None:
        body, gaps = self.line.text[self.line.body :], [gap for _, gap in self.tokens]
        self.keys = named([key_of(gap) for gap in gaps], gaps)
        self.singles = all(" " not in _OF_SET.sub("", key[0]) for key in self.keys)
        self.torchtune, self.llm_c = re.match(r"\s*\d+\|\d+\|", body) is not None, body[:2] == "s:"

    def take(self, i: int) -> None:
        """The role of the i-th number."""
        m, gap = self.tokens[i]
        previous, self.previous = self.previous, ""
        if m["date"] or m["clock"]:
            self._add("skip", "clock", m.span())
        elif m["avg"]:
            tag = previous and (f"{previous} (%)" if "%" in m[0] else f"{previous} (avg)")
            mean = previous and not gap.strip() and not previous.lower().startswith("best")  # CatBoost: best: 0.31 (120), where it was
            self._add("metric" if mean else "skip", tag, m.span("mean"))
        elif previous.endswith("(z))") and gap.strip() == "/":  # DCGAN: D(G(z)): 0.53 / 0.48, before and after its update
            self._add("metric", f"{previous} (after)", m.span("num"))
        else:
            key, _, _, tight = self.keys[i]
            role = role_of(key, m.lastgroup or "", i == 0 or (i == 1 and "epoch" in self.found))
            if self.llm_c:
                key, role = _LLM_C.get(key, key), "step" if key == "s" and tight and i == 0 else role
            if m["frac"]:
                self._fraction(i, key, role)
            else:
                self._number(i, key, role, previous)

    def _add(self, role: str, tag: str, span: tuple[int, int]) -> None:
        self.line.fields.append(Field(role, tag, *span))

    def _fraction(self, i: int, key: str, role: str) -> None:
        """``120/500``: a step of how many, an epoch of how many, or neither."""
        m, gap = self.tokens[i]
        before = "[" if i == 1 and gap == " " and self.tokens[0][1] == "[" else gap.rstrip()[-1:]  # "[3 800/75400]"
        opened = (before in {"[", "(", "|", ":", "<"} or _DRAWN.search(gap) is not None) and not self._of_share(i)
        epoch = "epoch" in self.found or any(f.tag.lower() in vocabulary.EPOCH for f in self.line.fields)  # "Epoch 1.01, i = 130 / 12000"
        beside = epoch and key.lower() in vocabulary.LAST_RESORT  # "epoch=0 i=378/530", or no word at all
        bare = key.lower() in _TRAINING or beside or (not key and (opened or (i == 0 and not gap.strip())))
        roles = ("skip", "skip")
        if role in {"global", "step"} or (role == "batch" and "step" not in self.found):
            self.found["step"] = len(self.line.fields)
            roles = ("it", "total")
        elif role == "epoch":
            roles = ("epoch", "epochs")
        elif bare and "step" not in self.found and (not self.line.mode or key.lower() not in EVAL):
            roles = roles if self.line.mode else ("it", "total")
            self.found.setdefault("eval" if self.line.mode else "step", len(self.line.fields))
        elif VOCABULARY.search(key):
            self.previous = key
        if "RunningAvgSamplesPerSec" in self.line.text:  # DeepSpeed before 0.7: epoch/step
            roles = ("epoch", "step")
        self._add(roles[0], key, m.span("it"))
        self._add(roles[1], key, m.span("total"))

    def _of_share(self, i: int) -> bool:
        """``95.5% (955/1000)``: counts behind a share of them."""
        return i > 0 and self.tokens[i][1].strip() == "(" and self.tokens[i - 1][0]["unit"] == "%"

    def _number(self, i: int, key: str, role: str, previous: str) -> None:
        (m, gap), unit = self.tokens[i], (self.tokens[i][0]["unit"] or "").strip()
        span = m.span("num")
        where = self._position(i, key, role, unit)
        if where:
            self._place(where, key, span)
        elif self.keys[i][2] and key.lower() in vocabulary.RANK and not self.line.has("rank"):
            self._add("rank", "", span)
        elif key[:1] == "(" and first_of_several(key[1:], m.string[m.end() :][:1], self.keys[i + 1 :]):
            self._metric(i, key[1:], unit)
        elif not key and previous and gap.strip() in {"->", "=>"}:
            self.line.fields[-1] = self.line.fields[-1]._replace(role="skip")  # "learning rate 0.0002 -> 0.0001": what it is from here on
            self._add("metric", previous, span)
        elif not key and self.found and not self.line.bar and closes_with_seconds(m, unit):
            self._add("metric", "time", span)  # "epoch 3 | loss 0.25 | 1.7s"
        elif not key and i == 0 and unit == "%" and gap.strip() == "[":
            self._add("metric", "progress", span)  # "[99.88%] batch_index=105408"
        elif not key:
            counted, scaled = speed(unit) if not self.line.bar else ("", False)
            self.line.scaled |= scaled
            self._add("metric" if counted else "skip", counted or unit, (span[0], span[1] + scaled))
        elif self._is_metric(i, key):
            self._metric(i, key, unit)
        else:
            self._add("skip", key, span)

    def _position(self, i: int, key: str, role: str, unit: str) -> str:
        """What the number says of the line's place in the run: step, global, epoch, skip (it is said already), or nothing."""
        m, _ = self.tokens[i]
        if self.torchtune and i < 2:
            return ("epoch", "step")[i]
        if unit == "it" and "step" not in self.found and key.lower() not in EVAL:  # tqdm without a known end
            return "step"
        if unit:
            return ""
        if role and m["num"][0] != "-" and whole(m["num"]) is not None and not (self.line.braces and "." in m["num"]):
            if role == "step" and self._counts_batches():
                return "global"
            counted = m.string.startswith("[step=", self.line.body)  # by the loop; what is global counts steps of the environment
            new = (role == "global" and not counted) or (role in {"step", "epoch"} and role not in self.found)
            return role if new else "skip"
        before_fraction = i + 1 < len(self.tokens) and self.tokens[i + 1][0]["frac"]
        return "epoch" if key.lower() in _TRAINING and before_fraction else ""  # timm

    def _counts_batches(self) -> bool:
        """Whether what was taken for the step is a batch of how many: a step named beside it is another count, and the better one."""
        at = self.found.get("step")
        return at is not None and role_of(self.line.fields[at].tag, "", False) == "batch"

    def _place(self, where: str, key: str, span: tuple[int, int]) -> None:
        fields = self.line.fields
        if where == "global" and "step" in self.found:  # the more specific word wins
            old = self.found["step"]
            fields[old] = fields[old]._replace(role="skip")
            if fields[old + 1 : old + 2] and fields[old + 1].role == "total":  # on a bar behind an epoch, that of the epoch
                fields[old + 1] = fields[old + 1]._replace(role="length" if self.line.bar and "epoch" in self.found else "skip")
        where = "step" if where == "global" else where
        if where != "skip":
            self.found[where] = len(fields)
        self._add(where, key, span)

    def _is_metric(self, i: int, key: str) -> bool:
        m, gap = self.tokens[i]
        text, explicit = m.string, self.keys[i][2]
        if in_several_units(m):
            return False
        if (
            text[m.end("num") :][:2] == "%|"
            or is_vector(gap, text[m.end() : m.end() + 200], key)
            or (SKIP.match(key) and not is_rate(key, m))
            or (key.endswith(".py") and not text[m.end() :].strip())  # the place that rich prints at the right
        ):
            return False
        if len(key) > 80 or len(key.split()) > 7 or not _LETTER.search(key):
            return False
        named = re.fullmatch(r"[^\W\d_][\w/@.-]*", _OF_SET.sub("", key)) and (self.singles or set_apart(gap, key, first=i == 0))
        known = VOCABULARY.search(key) or STRONG.search(key) or is_rate(key, m) or ON_SET.search(key)
        return bool(explicit or key.startswith(("|", "‖")) or known or named or between_marks(m, gap))

    def _metric(self, i: int, key: str, unit: str) -> None:
        line, (first, end) = self.line, self.tokens[i][0].span("num")
        scaled = unit in SUFFIX and ("consumed_tokens" in line.text or _COUNTED.search(key) is not None)
        line.scaled = line.scaled or scaled
        key = with_unit(key, unit)
        self._add("metric", key, (first, end + scaled))
        line.explicit += self.keys[i][2]
        line.context = line.context or self.keys[i][1]
        self.previous = key
