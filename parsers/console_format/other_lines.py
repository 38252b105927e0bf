"""The lines of a console log that measure nothing: tracebacks, program text, settings, events and lists of samples."""

from __future__ import annotations

import collections
import re

from parsers.console_format import printed_settings
from parsers.console_format.event_lines import Event
from parsers.console_format.line_prefix import Where
from parsers.console_format.printed_estimator import PrintedEstimator
from parsers.console_format.program_text import ProgramText
from parsers.console_format.settings_dicts import SettingsDict
from parsers.console_format.settings_lists import SettingsList
from parsers.console_format.tracebacks import FRAME, TRACEBACK, Traceback
from parsers.lazy_regex import lazy_re
from parsers.tables import Rows

MAX_ALIKE, MAX_OVERFLOWS, _RANKS = 200, 10_000, 100  # the last, a bound: lines within which all ranks say the same
_BATCH = lazy_re(r"\b(?P<key>shards?|files|ids|sample_ids|samples|indices|doc_ids)=\[(?P<list>[^\[\]]*+)\]")
_BATCH_STEP = lazy_re(r"^(?>.*?\bbatch\b).*?\b(?:step|iter|iteration)[= :]++(\d{1,15})\b")
_WITH_IDS = lazy_re(
    r"(?:(?<!\s)\s++|[,;|]\s*+)?['\"]?\b(?P<key>(?:batch_)?(?:sample|example|doc|document|data|row|item|instance|record)_?(?:ids?|idxs?|indices|indexes)"
    r"|batch_(?:ids?|indices)|ids|indices|shards?|files)\b['\"]?\s*+(?:[:=]\s*+)?[\[(]{1,4}(?P<list>[^\[\]()]*+)[\])]"
)
_STEP = lazy_re(r"(?i)\b(?:(?:global|train|optimizer)[_ ]?)?(?:step|iteration|iter|update)\b['\"]?\s*+(?:[:=#]\s*+)?(\d{1,15})\b")
_WORD = lazy_re(r"'[^']*'|\"[^\"]*\"|[^,\s]+")
_SHARDS = {"shard", "shards", "files"}
# What Python writes above a traceback that ends no process: threading's, of another thread; logging's, of a message; a finalizer's.
_GOES_ON = lazy_re(r"\W*(?:Exception in thread |--- Logging error ---|Exception ignored in)")
_KEYS, _VALUES = {"parameter", "key", "name", "argument", "option", "setting", "config"}, {"value", "values", "setting", "default"}
_LONGEST_HEADER = 200  # characters; in a line of stars, where the stars end is a question with too many answers
_HF_HEADER = lazy_re(
    r"^\s*(Num examples|Num Epochs|Instantaneous batch size per device|Total train batch size[^=]*|"
    r"Gradient Accumulation steps|Total optimization steps) = ([\d,]+)"
)


class Words:
    """Each method takes a line and says whether it was its business; what it means goes to ``rows``."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.alike: collections.Counter[tuple[str, str]] = collections.Counter()
        self.tracebacks: dict[int | None, Traceback] = {}
        self.in_arguments = self.in_header = False
        self.dotted: set[str] = set()  # keys of dotted dumps
        self.dictionary = SettingsDict()
        self.estimator = PrintedEstimator()
        self.list = SettingsList()
        self.program = ProgramText()
        self.told: set[int] = set()  # lines whose settings are known
        self.last_overflow = ("", -1)
        self.above = ""  # the line before
        self.said: collections.deque[tuple[tuple[str, str, int | None], int]] = collections.deque(maxlen=16)  # what was said, and its line

    def event(self, where: Where, event: Event, step: int | None) -> None:
        step = event.step if event.step is not None else step
        if event.kind == "overflow" and (event.text, step) == self.last_overflow:
            return  # every rank says it
        self.last_overflow = (event.text, step if step is not None else -1) if event.kind == "overflow" else ("", -1)
        alike = (event.kind, re.sub(r"\d+", "0", event.text))
        if event.kind in {"start", "finished", "checkpoint_saved", "resume"}:  # once a step, not once a rank and file
            said = (event.kind, re.sub(r"\d+", "", " ".join(w for w in event.text.split() if "/" not in w)), step)
            if any(said == other and (step is not None or where.line - line <= _RANKS) for other, line in self.said):
                return
            self.said.append((said, where.line))
        self.alike[alike] += 1
        if self.alike[alike] <= (MAX_OVERFLOWS if event.kind == "overflow" else MAX_ALIKE):
            self.rows.event(event.kind, event.text, level=event.level, step=step, time=where.time, at=where.line, rank=where.rank)
        if len(self.alike) > 20_000:
            self.alike.clear()

    def counted(self) -> list[str]:
        """Sentences on the events that were counted instead of kept."""
        return [
            f"{count - MAX_ALIKE:,} more lines like '{text[:80]}' were counted, not kept"
            for (kind, text), count in self.alike.items()
            if kind != "overflow" and count > MAX_ALIKE
        ]

    def traceback(self, where: Where, text: str, body: str, step: int | None) -> bool:
        rank, running = where.rank, self.tracebacks.get(where.rank)
        above, self.above = self.above, body
        body = body[1:] if len(body) < len(text) and body[:1] == " " else body  # "[rank3]:   File ..."
        begin = TRACEBACK.search(text)
        if begin is not None and not re.search(r"['\"]", text[begin.end() :]):
            if running is not None and running.lines:
                self.close(rank, step)  # with no line of its own yet, two threads write over each other
            indent = text[: begin.start()] if not text[: begin.start()].strip() else ""
            self.tracebacks[rank] = Traceback(where, "WARNING" in text[:200] or _GOES_ON.match(above) is not None, indent=indent)
            return True
        if running is None and FRAME.match(body) is not None and ", in " in body:
            running = self.tracebacks[rank] = Traceback(where, headless=True)
        if running is None:
            return False
        if running.feed(body if body.strip() else text):
            if running.last:
                self.close(rank, step)
            return True
        self.close(rank, step)
        return False

    def close(self, rank: int | None, step: int | None) -> None:
        running = self.tracebacks.pop(rank)
        if (event := running.event()) is not None:
            self.event(running.where, event, step)
            if step is None and rank is None and running.whole and event.level == "error":
                self.event(running.where, event._replace(kind="not_begun", level="info"), step)

    def close_all(self, step: int | None) -> None:
        self.configured(self.list.end())
        for rank in list(self.tracebacks):
            self.close(rank, step)

    def arguments(self, n: int, text: str) -> bool:
        """Argument dumps, wherever they stand."""
        if m := printed_settings.BLOCK.match(text):
            self.in_arguments = not m["end"]
            return True
        if ".." in text or self.in_arguments:
            found = printed_settings.dotted(text, self.in_arguments) or self._told_again(text)
            if found:
                self.dotted.add(found[0])
                self.told.add(n)
                self.rows.config(*found, at=n)
                return True
            self.in_arguments = self.in_arguments and text[:1] in " -"
        if "(" in text and "=" in text:
            pairs = list(printed_settings.namespace(text))
            for key, value in pairs:
                self.rows.config(key, value, at=n)
            return bool(pairs)
        return False

    def _told_again(self, text: str) -> tuple[str, object] | None:
        """A dotted row outside a block, of a key that a block had: what the next launch overrides."""
        found = printed_settings.dotted(text, True) if self.dotted else None
        return found if found and found[0] in self.dotted else None

    def stated(self, n: int, body: str, started: bool) -> bool:
        """A line that says of itself that it lists settings: what it names is no measurement, "steps" is the plan."""
        pairs = printed_settings.stated(body, started=started) if "=" in body or ":" in body or " train" in f" {body[:10].lower()}" else []
        for key, value in pairs:
            self.rows.config(key, value, at=n)
        return bool(pairs)

    def boxed(self, n: int, rows: tuple[tuple[str, str], ...]) -> None:
        """Settings in a box that ends in line ``n``; a row of words above them is its heading."""
        for key, text in rows:
            if not (key.lower() in _KEYS and text.lower() in _VALUES):
                self.rows.config(key, printed_settings.value_of(text), at=n)

    def listed(self, n: int, text: str, body: str) -> None:
        """Settings one below the other; their lines may be read as something else as well."""
        self.configured(self.list.feed(n, text, body))

    def configured(self, pairs: list[tuple[str, object, int]]) -> None:
        for key, value, at in pairs:
            if at not in self.told:
                self.rows.config(key, value, at=at)

    def settings(self, n: int, text: str, body: str, started: bool, known: dict[str, int]) -> None:
        """Settings in the lines before training; transformers prints its own at each start."""
        if ".py" in body and " -" in body:
            for key, value in printed_settings.command(body):
                self.rows.config(key, value, at=n)
        if len(text) < _LONGEST_HEADER and printed_settings.HEADER.match(text):
            self.in_header = True
            return
        if m := _HF_HEADER.match(body):
            known[m[1].strip()] = int(m[2].replace(",", ""))
            self.rows.config(m[1].strip(), known[m[1].strip()], at=n)
            return
        indented = self.in_header and text[:1] in " \t"
        self.in_header = indented
        if not started or indented:
            for key, value in printed_settings.header(body, indented):
                self.rows.config(key, value, at=n)
                self.told.add(n)
                told = {"epochs": "Num Epochs", "num_train_epochs": "Num Epochs", "logging_steps": "logging_steps"}.get(key)
                if told and isinstance(value, (int, float)) and value == int(value) > 0:
                    known.setdefault(told, int(value))

    def printed_dict(self, n: int, body: str) -> bool:
        """Settings printed as a dictionary; its lines may be read as something else as well, unless it sets a switch or names something by a
        word: then ``num_timesteps`` in it is the plan and no step that was reached, and ``lr`` no rate that was logged."""
        estimator = self.estimator.feed(n, body)
        pairs = self.dictionary.feed(n, body) if estimator is None else estimator
        for key, value, at in pairs:
            self.rows.config(key, value, at=at)
        return estimator is not None or any(isinstance(v, bool) or (isinstance(v, str) and v.isidentifier()) for _, v, _ in pairs)

    def printed_again(self, n: int, body: str) -> bool:
        """A dictionary of settings that begins as one of an earlier launch did, once training has begun."""
        if not self.dictionary.goes_on(body):
            return False
        found = self.dictionary.feed(n, body)
        for key, value, at in found:
            self.rows.config(key, value, at=at)
        return bool(found) or self.dictionary.goes_on("")

    def batch(self, n: int, text: str, rank: int | None) -> bool:
        """``batch step=1 shards=['a', 'b'] ids=[7519, 6015]``: the samples of a batch, as the loader printed them."""
        if "=[" not in text or not (m := _BATCH_STEP.search(text)):
            return False
        return self._ids(n, int(m[1]), rank, {b["key"]: b["list"] for b in _BATCH.finditer(text)})

    def without_ids(self, n: int, text: str, rank: int | None) -> str:
        """``step 120 loss 2.1 sample_ids=[7519, 6015]``: takes the samples out of a line and gives back what else it says."""
        if "[" not in text and "(" not in text:
            return text
        lists = {b["key"]: b["list"] for b in _WITH_IDS.finditer(text)}
        step = _STEP.search(text) if lists.keys() - _SHARDS else None
        if step is None or not self._ids(n, int(step[1]), rank, lists):
            return text
        return _WITH_IDS.sub("", text)

    def _ids(self, n: int, step: int, rank: int | None, lists: dict[str, str]) -> bool:
        """Rows of the batches table; False where the lists are empty."""
        words = {k: [x for w in _WORD.findall(v) if (x := w.strip("'\"")) not in {"", "...", "…"}] for k, v in lists.items()}
        shards = next((v for k, v in words.items() if k in _SHARDS), [])
        samples = next((v for k, v in words.items() if k not in _SHARDS), [])
        size = max(len(shards), len(samples))
        shards = shards * size if len(shards) == 1 else shards if len(shards) == size else []
        for i in range(size):
            self.rows.add(
                "batches",
                step=step,
                rank=rank,
                position=i,
                at=n,
                how="recorded",
                sample=samples[i] if i < len(samples) else None,
                shard=shards[i] if shards else None,
            )
        return bool(lists)
