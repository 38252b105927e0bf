"""Places of the run that a line names by its form alone: ``[25] loss=0.5``, ``[3, 2000/12500]``, ``[0 :  100]``, ``[3/25][50/1583]``, ``[ 7 Epoch:[0/25] [6/632]``, ``3epoch:train:1-50batch:``, ``[a] 3/9:  25%|#  | 1/4 [``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from parsers.console_format.grammars import STRONG
from parsers.console_format.line_prefix import Field, Line
from parsers.lazy_regex import lazy_re

_COUNT = lazy_re(r" ?\[(\d+)\](?:\t| [A-Za-z][\w/]*=)")  # XGBoost, LightGBM; CLU of Flax: [25] train_loss=0.5, epoch=1
_PAIR = lazy_re(r"\[ *(\d+)(?:,| :) *(\d+)(?:/ *(\d+))?\]")
_TWO = lazy_re(r"\[ *(\d+) */ *\d+ *\] *\[ *(\d+) */ *(\d+) *\]")
# DCGAN of TensorFlow: [   7 Epoch:[ 0/25] [   6/ 632]
_THROUGH = lazy_re(r"\[? *(\d{1,9})\]? Epoch: ?\[ *\d{1,9} */ *\d{1,9} *\] *\[ *(\d{1,9}) */ *(\d{1,9}) *\]")
_OF_EPOCH = lazy_re(r"(\d{1,6})[- ]epoch \((\d{1,9})/(\d{1,9})\)")  # Mugs: 0-epoch (84/178643): total loss 11.2
_OF_EPOCHS = lazy_re(r"^epochs? ")
_EPOCH_BEHIND = lazy_re(r"\W*(\d{1,9})/(\d{1,9}) epochs? (?=[A-Za-z])")  # 3/10 epoch G_loss : 2.5
_PARTED = lazy_re(r"(?i)\bepoch \[(\d{1,9})\] ?/ ?\[(\d{1,9})\]")  # Epoch [0]/[4]
_ROUND = lazy_re(r"\s*+\[ROUND (\d{1,6})\]\s*$")
_LOOKED_UP = lazy_re(r"[\w-]+ +train +: \[loss = ")  # NAS-Bench-201's table of what others trained before
_BEHIND = lazy_re(r"(?:^|(?<=\s))(?P<epoch>\d{1,6})epoch(?::\w+:(?:\d+-)?(?P<it>\d+)batch)?(?=[: ])")  # ESPnet: 3epoch:train:1-50batch
# "Start Evaluating 10 Epoch..0%..10%....BEST_ACC: 98.7%"
_ACTS_IN = lazy_re(r"(?i)\W*(?:start|begin)\w*+ (?:train|evaluat|test|validat)\w*+ (\d{1,6}) epoch\b")
_BAR_OF_EPOCH = lazy_re(
    r"[^|%]*?(?:^|[\s\]])(\d{1,9})/(\d{1,9}):? {1,9}\d{1,3}%\|[^|]*+\| {0,9}(\d{1,9})/(\d{1,9}) \["
)  # tqdm's description: [fold_0] 001/200:  25%|##   | 1/4 [
_OF_SPLIT = lazy_re(r"(?i)\[ *(?:train|training|val|valid|validation|test) *\| *(\d{1,6})/ *(\d{1,6}) *\]")  # [ Valid | 001/100 ]
_GAUGE = lazy_re(
    r"[^\[\]|]{0,40}\[[=>.#\- ]{5,100}\] *\d{1,3}(?:\.\d+)?% +(\d{1,9})/(\d{1,9})(?= )"
)  # Training [==>   ] 8.5% 50/588 | loss=3.9
_COLBERT = lazy_re(
    r"\[([A-Z][a-z]{2} \d\d), \d\d:\d\d:\d\d\] (?P<step>\d{1,9}) (?P<loss>\d{1,6}\.\d{1,18})\s*"
)  # its print_message(batch_idx, train_loss)
# "1m 47s (- 25m 9s) (5000 6%) 2.8516": PyTorch's tutorial of translation and its many heirs, since the start, left, updates, share of them, mean loss
_TUTORIAL = lazy_re(
    r".{0,80}?\d{1,6}m \d{1,2}s (?:\(- ?-?\d{1,6}m \d{1,2}s\) )?\((?P<step>\d{1,9}) \d{1,3}%\) (?P<loss>\d{1,9}\.\d{1,19})?"
)
_AFTER = lazy_re(
    r"(?i)\W*(?P<what>(?:[a-z]+ ){0,2}(?:loss|accuracy|acc|error|perplexity|reward)) after (?P<place>\d{1,9}) (?P<of>epoch|step|iteration|update)s?\b(?: is)?[:= ]"
)

_BEST_WAS = lazy_re(
    r"(?i)\b(?:(?:new|current|overall) )?(?:best|highest|lowest|max|min|maximum|minimum)\b"
    r"(?:[^|;]{1,120}?\b(?:at|in|from|@)(?: the)? (?:epoch|step|iter\w*)|[ :=]{1,3}[\d.]{1,20}%? (?:epoch|ep|step|iter\w*))[ :=#]{0,3}$"
)
_NEW = lazy_re(r"(?i)\bnew\b|\bimproved\b")
# Lightning's and Keras' EarlyStopping
_GAINED = lazy_re(r"(?i)\b(?:improved|increased|decreased)\b(?: \w{1,20})? (?:by|from)$|\bmin_delta$")
_BETTER = lazy_re(r"Metric (?P<what>[\w./@-]{1,80}) improved\b")


def put_places(line: Line, body: str, found: Mapping[str, int]) -> None:
    """Gives such numbers their roles; ``found``: what words already say of the place."""
    if "step" not in found and (m := _COUNT.match(body)) is not None:
        _placed(line, m, ("step",))
    if not found and (m := _PAIR.match(body)) is not None:  # [epoch, iteration] or [epoch, iteration/iterations]
        _placed(line, m, ("epoch", "it", "total"))
    if not line.mode and not line.has("epoch") and (m := _TWO.match(body)) is not None:  # [epoch/epochs][iteration/iterations]
        line.fields = [f._replace(role="epochs") if f.role == "total" else f for f in line.fields]
        _placed(line, m, ("epoch", "it", "total"))
    if "Epoch:" in body[:24] and (m := _THROUGH.match(body)) is not None:
        _placed(line, m, ("step", "skip", "length"))
        line.fields = [f._replace(tag="global_step") if f.role == "step" else f for f in line.fields]
    _put_epochs(line, body)
    if not found and (m := _ACTS_IN.match(body)) is not None:
        _placed(line, m, ("epoch",))
    if not found and (m := _ROUND.match(body)) is not None:
        _placed(line, m, ("epoch",))
    if not found and "epoch" in body and (m := _BEHIND.search(body)) is not None:
        named = [Field(role, "", *(line.body + i for i in m.span(role))) for role in ("epoch", "it") if m[role]]
        line.fields = sorted([*line.fields, *named], key=lambda f: f.start)
    if line.bar and not line.has("epoch") and (m := _BAR_OF_EPOCH.match(body)) is not None and m[2] != m[4]:
        bare = [f for f in line.fields if f.start in (line.body + m.start(1), line.body + m.start(2)) and f.role == "skip" and not f.tag]
        if len(bare) == 2:
            _placed(line, m, ("epoch", "epochs", "it", "total"))
    if " : [loss = " in body and _LOOKED_UP.match(body) is not None:
        line.fields = [f._replace(role="skip") for f in line.fields]
    _put_written_out(line, body, found)
    _leave_out_the_best(line, body)


def _put_epochs(line: Line, body: str) -> None:
    """Epochs in brackets of their own or in front of their word."""
    if "epoch (" in body and (m := _OF_EPOCH.search(body)) is not None:
        _placed(line, m, ("epoch", "it", "total"))
    if "]/[" in body and (m := _PARTED.search(body)) is not None:
        _placed(line, m, ("epoch", "epochs"))
    if not line.bar and (m := _EPOCH_BEHIND.match(body)) is not None:
        _placed(line, m, ("epoch", "epochs"))
        line.fields = [f._replace(tag=_OF_EPOCHS.sub("", f.tag)) for f in line.fields]


def _put_written_out(line: Line, body: str, found: Mapping[str, int]) -> None:
    """Places whose word does not stand in front: of a split in brackets, in a drawn bar, behind what is measured."""
    if not line.has("epoch") and "[" in body[:4] and (m := _OF_SPLIT.match(body)) is not None:
        _placed(line, m, ("epoch", "epochs"))
    if not found and "% " in body and (m := _GAUGE.match(body)) is not None and any(STRONG.search(t) for t, _ in line.metrics()):
        _placed(line, m, ("it", "total"))
    if not found and (m := _COLBERT.fullmatch(body)) is not None:
        _placed(line, m, ("skip", "step", "metric"))
        line.fields = [
            f._replace(role="skip" if f.start < line.body + m.start("step") else f.role, tag=f.tag or "train_loss") for f in line.fields
        ]
    if not found and "%) " in body and "m " in body and (m := _TUTORIAL.match(body)) is not None:
        _placed(line, m, ("step", "metric"))
        line.fields = [f._replace(tag="loss") if m["loss"] and f.start == line.body + m.start("loss") else f for f in line.fields]
    if " after " in body and (m := _AFTER.match(body)) is not None:
        numbers = [i for i, f in enumerate(line.fields) if f.role == "metric"][:2]
        if [line.fields[i].start for i in numbers[:1]] == [line.body + m.start("place")] and len(numbers) == 2:
            first, second = (line.fields[i] for i in numbers)
            role = "epoch" if m["of"].lower() == "epoch" else "step"
            line.fields[numbers[0]], line.fields[numbers[1]] = first._replace(role=role, tag=m["of"]), second._replace(tag=m["what"])


def _leave_out_the_best(line: Line, body: str) -> None:
    """``current best dsc: 0.91 at epoch: 39`` tells where the best was, whatever epoch it is now; a new best is of now. ``val_loss improved by 0.1 >=
    min_delta = 0.0``, ``improved from 0.5`` tell what was gained, which is nothing measured; a curve of best scores can only get better."""
    better = _BETTER.match(body)
    for i, f in enumerate(line.fields):
        if f.role == "metric" and _GAINED.search(f.tag):
            line.fields[i] = f._replace(role="skip")
        if better is not None and f.tag == "New best score":
            line.fields[i] = f._replace(tag=f"best {better['what']} so far")
        if f.role in ("epoch", "step") and (m := _BEST_WAS.search(body, 0, f.start - line.body)) is not None and not _NEW.search(m[0]):
            line.fields[i] = f._replace(role="skip")


def _placed(line: Line, m: re.Match[str], roles: tuple[str, ...]) -> None:
    """Gives the numbers in a match's groups these roles."""
    places = {line.body + m.start(g): role for g, role in enumerate(roles, 1)}
    line.fields = [f._replace(role=places.get(f.start, f.role)) for f in line.fields]
