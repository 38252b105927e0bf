"""The words of console lines: what the words before a number mean, which tags are measurements, and which lines report."""

from __future__ import annotations

import re
from collections.abc import Sequence

from parsers.console_format.line_prefix import Line
from parsers.console_format.line_vectors import is_load
from parsers.lazy_regex import lazy_re
from parsers.records import vocabulary

NUM = (
    r"[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d|,\d)|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?"
    r"|(?:[nN]a[nN]|NAN|[iI]nf(?:inity)?|INF)(?![A-Za-z]))"
)
_WRAPPED = lazy_re(r"(?:(?:np|torch|jnp|numpy)\.)?(?:(?:b?float|int)(?:16|32|64)|tensor|array)\($")
EVAL = {w: w for w in vocabulary.EVALUATION} | {"validate": "validation", "validating": "validation", "evaluate": "evaluation"}
EVAL |= {"evaluating": "evaluation", "testing": "test", "held-out": "heldout"}  # as the line says it -> as it is put before the line's tags
_TELLING = {"train", "training", "time", *EVAL}  # "time cost" is no cost (MXNet)
_MOST_TIGHT = 4  # words of a name that touches its number: a sentence before it is longer
# "Up. 20" is Marian's update; sizes of batches are printed like their numbers
_STEP = {*vocabulary.STEP, "up", "upd"} - {*vocabulary.BATCH_NUMBER}
_PLACES = _STEP | {*vocabulary.EPOCH} | vocabulary.THROUGH_THE_RUN
STEP_WORD = "|".join(sorted((_STEP | {*vocabulary.EPOCH} | vocabulary.THROUGH_THE_RUN) - {"up"}, key=len, reverse=True))
_PLURAL = {"steps", "iters", "iterations", "updates"}  # behind other settings: how many there will be
_EPOCH = {*vocabulary.EPOCH, "i_ep", "i_epoch"}
PREPARES = lazy_re(
    r"[\d?] ?(?:examples|ex|ba|[kKMG]?i?B|files?|rows?|docs?)/s\b|^\W*(?:Fetching|Downloading|Uploading|Loading|Resolving|Extracting)\b"
)  # units of data sets and downloads, and what libraries say in front
_CUT = lazy_re(
    r"[|,;{}\[\]\t]|\s-\s|\s{2,}|•|=>|->|:(?:\s|$)|(?<![Aa]vg)(?<![Tt]rain)(?<![Tt]est)(?<!\b[Vv]al)\.\s|(?<!\.)\.{3,}+(?=[A-Za-z])|\s/\s"
)
# ||w||, as a formula has it: bars that touch a word part nothing
NORM = lazy_re(r"(?<![\w|‖])(?P<bar>\|{1,2}|‖)[\w∇]{1,16}(?P=bar)(?:_?[12F])?$")
_OF_NORM = ("|", "‖", "1", "2", "F")
_UNOPENED = lazy_re(r"[^()]*\)(?=\s+[A-Za-z])")  # "(8.7 ms/step) psum": a bracket that closes ends what was said of the number before
_CALLED = lazy_re(r"[A-Za-z][\w/.@-]{0,40} \([A-Za-z][^()=@]{0,30}[=@][^()]{1,30}\)$|[A-Za-z][\w/.@-]{0,40}\([A-Za-z][^()]{0,60}\)$")
_OVER = lazy_re(r" (?:of|over|on|in) \d{1,9} [a-z]{1,12}$")  # "Mean test loss of 63 batches: 4.4"
_STOP = {"with", "and", "is", "of", "at", "the", "a", "an", "with:", "avg.", "was", "has", "got"}
# "Average chamfer distance on val 0.0004": what is said of held-out data is measured, whatever it is called
ON_SET = lazy_re(
    r"(?i)^(?!evaluat|testing|running|validating).*\b\w{2,20} on (?:the )?(?:val(?:id(?:ation)?)?|test|dev|eval)(?: ?set| data)?$"
)
STRONG = lazy_re(
    r"(?i)(?:^|[\W_])(?:loss(?:es)?|ppl|perplexity|bpb|bpc|nll|acc(?:uracy)?(?:@?\d+)?|top-?[15]|f1"
    r"|bleu|auc|m?AP(?:50)?|miou|dice|psnr|ssim|[fk]id(?:\d+k)?|wer|cer|mae|s?mape|mse|rmse|rewards?|score|return|elbo)(?:[\W_]|$)|loss$|^loss|acc$"
    r"|(?:^|[\W_])(?:train\w*|val\w*|test|dev|eval\w*)[ _-](?:set )?err(?:or)?(?:[ _-]rate)?$"  # an error without its split may be a failure
    r"|^(?:(?:mean|avg|average|total|train\w*|val\w*|test|dev)[ _])?cost$"
)
VOCABULARY = lazy_re(
    r"(?i)loss|acc|ppl|perplex|bpb|norm|reward|mfu|tok|throughput|_lr$|^lr|^(?:dt|time|data|wd|kl"
    r"|grad|wps|ups|wpb|bsz|mem|memory|clip|wall|entropy|score|f1|momentum|tps|tflops|fps|train_wall)$"
)


def key_of(gap: str) -> tuple[str, str, bool, bool]:
    """The words before a number -> (key, words before a tight key, has ':' or '=', they touch the number)."""
    gap = _WRAPPED.sub("", gap) if gap.endswith("(") else gap  # np.float64(0.1)
    gap = gap[m.end() :] if ")" in gap and (m := _UNOPENED.match(gap)) is not None else gap
    g = gap.rstrip(" \t\"'[({~$<")
    explicit = g.endswith((":", "="))
    if (
        not explicit
        and gap[:1] == " "
        and g.endswith(_OF_NORM)
        and gap.endswith(" ")
        and (m := NORM.search(g))
        and not g[: m.start()].strip(" |,;")
    ):
        return m[0], "", False, False  # "lr 1e-3  |g| 3.4", "lr 1e-3 | |g| 3.4"
    if not explicit:
        key = _CUT.split(g)[-1].strip(" .:=<>*#\"'").lstrip(") -\"'")
        words = [w for w in key.split() if w.lower() not in _STOP]
        return " ".join(words), "", False, False
    tight = len(g) == len(gap.rstrip("\"'[(")) and g[-2:-1] != " "
    g = g[:-1].rstrip(" :=")
    if g.endswith(_OF_NORM) and (m := NORM.search(g)) is not None:
        return m[0], "", True, False
    if g.endswith(("'", '"')):
        return g[g.rfind(g[-1], 0, -1) + 1 : -1], "", True, False
    if g.endswith(")") and (m := _CALLED.search(g)) is not None:
        return m[0], "", True, tight  # "rmse(train, last 30)=1.17"
    key = _OVER.sub("", _CUT.split(g)[-1].strip(" .:=<>*#\"'").lstrip(") /-"))
    key = key.lstrip("(") if ")" not in key else key if "(" in key else key.rstrip(")")
    words = key.split()
    if tight and len(words) > 1:
        split = next(
            (i for i, w in enumerate(words[:-1]) if w.lower() in _TELLING), None
        )  # "Val Loss=0.3": the word before tells two losses apart
        if split is not None and len(words) - split <= _MOST_TIGHT:
            return " ".join(words[split:]), " ".join(words[:split]), True, True
        return words[-1].rsplit(":", 1)[-1], " ".join(words[:-1]), True, True
    return (key.rsplit(":", 1)[-1] if tight else key), "", True, tight


def role_of(key: str, tail: str, first: bool) -> str:
    words = re.sub(r"\([^()]*+\)$", "", key.lower()).split()
    if not words:
        return ""
    last = words[-1].lstrip("#")
    if last.startswith("(") and last[1:] in _PLACES:  # "non-finite loss (epoch 0, step 29)" says where, no loss
        return "skip"
    if len(words) > 1 and words[0] in {"best", "lowest", "highest"} and last in {*_STEP, *_EPOCH}:  # where it was
        return "skip"
    if last in vocabulary.THROUGH_THE_RUN or "_".join(words[-2:]) in vocabulary.THROUGH_THE_RUN:
        return "global"
    if last in _STEP and "per" not in words and "total" not in words and (first or last not in {*_PLURAL, "up"}):
        return "step"
    if last in _EPOCH and "per" not in words:
        return "epoch"
    if last in {"batch", "mini-batch", "minibatch"} and tail != "num":
        return "batch"
    return ""


def is_vector(gap: str, after: str, key: str) -> bool:
    """Lists are no measurements, but learning rates of parameter groups are: their first is the one."""
    opened = gap[-2:].strip()
    several = opened.endswith("[") and after.partition("]")[0].count(",") > 1
    called = re.search(r"\w\($", _WRAPPED.sub("", gap)) is not None  # arguments of a function
    return called or opened == "[[" or (several and not re.search("(?i)lr|learning", key))


def first_of_several(key: str, behind: str, others: Sequence[tuple[str, str, bool, bool]]) -> bool:
    """``loss 4.2 (ce 4.0, kl 0.2)``: does a key in an open bracket begin a list of them? One alone may say where the best was."""
    return behind in {",", ";"} and bool(others) and bool(others[0][0]) and re.fullmatch(r"[A-Za-z][\w/@.-]*", key) is not None


_SETTING = lazy_re(r"(?i)scal(?:e|ing)|weight|coef|_every|interval|scheduler|function$|\bfn\b|_type|label|smooth|threshold")
_SYSTEM = lazy_re(r"(?i)cpu|gpu|rss|vram|mem|util|temp|power|disk|load")
_RATE = lazy_re(r"(?i)^current (?:lr|learning[ _]rate)$")
RATE = r"(?:(?:current|new) )?(?:lr|learning[ _]rate)(?: (?:is|now|is now))?"
_OF_LOOP = lazy_re(
    rf"(?i)^{RATE}$|^(?:(?:epoch|step|batch|iter(?:ation)?|train(?:ing)?|eval(?:uation)?|total|elapsed) )?time(?: taken| cost)?(?: \(\w+\))?$"
    r"|^time elapsed$"
)  # what a loop says of itself below its losses
_TOOK = lazy_re(r"(?i)^(?:(?:epoch|total|train(?:ing)?|elapsed) )?time(?: taken| elapsed)?(?: \(\w+\))?$")
_WORD = lazy_re(r"[A-Za-z_]{2,}")
_PROGRAM = lazy_re(r"[({]\w+=|\)\.|[\w)\]'\"] ?==(?![=>])|\\")  # "====> Test loss: 0.3" compares nothing


_OF_RUN = {"learning", "training", "current"}  # "Learning iteration 0/1500" (rsl_rl)
_NESTED = lazy_re(r"\s+[a-z_]+: \d+\s*")  # "  num_updates: 50" is a setting in YAML


def only_place(line: Line) -> bool:
    """Does the line name its place in the run and nothing else (``--> STEP: 24/36 -- GLOBAL_STEP: 1000025``)? A batch is one of how many."""
    words = {w.lower() for w in re.findall(r"[A-Za-z_]+", line.text[line.body :])} - _OF_RUN
    return (
        bool(words)
        and words <= (_PLACES | {*vocabulary.BATCH_NUMBER} if line.has("total") else _PLACES)
        and _NESTED.fullmatch(line.text) is None
    )


def epoch_beside(line: Line) -> bool:
    """Does a line say its epoch before or behind the dict that it prints? An ``'epoch'`` in it is one of its numbers, unless it says of how many."""
    first, last = line.text.find("{", line.body), line.text.rfind("}")
    return line.has("epochs") or any(f.role == "epoch" and (f.end <= first or f.start > last >= first) for f in line.fields)


_LENGTH = lazy_re(r"(?i)^(?:train(?:ing)? epochs?|steps|iterations|iters|epochs)$")
_LISTS = lazy_re(r"(?i)\W*(?:[a-z]+ )?(?:settings?|hyper-?param(?:eter)?s|configuration)\b")
_SET = lazy_re(r"(?i)^(?:base[_ ])?(?:lr|learning[ _]rate)$|size$|decay$|warm-?up")


def sets_length(line: Line) -> bool:
    """Does a line name how many steps there will be, among what a launch sets (``Steps: 288000 | LR: 2.5e-6``), and not where a loop is?"""
    tags, places = [t for t, _ in line.metrics()], [f.tag for f in line.fields if f.role in ("step", "it", "epoch")]
    told = bool(tags and places) and not line.has("total")
    if told and _LISTS.match(line.text, line.body) is not None:
        return True
    return told and all(_SET.search(t) for t in tags) and all(_LENGTH.search(t) for t in places)


def is_measured(tag: str) -> bool:
    """Is it a word such as loss or reward, and not what is set for one (``reward_scaling``)?"""
    return (STRONG.search(tag) or ON_SET.search(tag)) is not None and _SETTING.search(tag) is None


def sets_dict(body: str) -> bool:
    """Is the dictionary in a line what is set for losses, and no measurement (``loss_weights: {'bce': 1, 'dice': 1}``)?"""
    return _SETTING.search(body.partition("{")[0][-40:]) is not None


def whole_row(line: Line) -> bool:
    """Is a line a row of measurements by its shape alone, each number with its ``key:``?"""
    return line.explicit > 1 and line.explicit == sum(f.role == "metric" for f in line.fields)


def tells_epoch(line: Line, loose: bool) -> bool:
    """Does a line that names its epoch and no finer step report at it: words such as loss, a whole row, or what the epoch took (``Epoch: 3 | Epoch Time: 29 s``)?
    Where losses stand above such a time (``loose``: one came before any step), it is no place of what is below."""
    tags = [tag for tag, _ in line.metrics()]
    timed = not loose and line.mode == "" and all(_TOOK.search(t) for t in tags)
    fractions = any("." in line.text[f.start : f.end] for f in line.fields if f.role == "metric")
    return timed or line.counted or (whole_row(line) and fractions) or any(STRONG.search(t) for t in tags) or _all_named(line, tags)


def _all_named(line: Line, tags: list[str]) -> bool:
    """Is a line that speaks of an evaluation nothing but names and their values (``dev epoch 3 ctc 2.480 PER 39.09%``), fractions among them?"""
    body, numbers = line.text[line.body :], [f for f in line.fields if f.role == "metric"]
    words = len(_WORD.findall(body)) - sum(len(_WORD.findall(t)) for t in tags)
    return bool(line.mode) and words <= 1 and len(numbers) > 1 and any("." in line.text[f.start : f.end] for f in numbers)


def stands_alone(line: Line, near: bool, timed: bool, started: bool) -> bool:
    """Is a line without a step a report? `near`: right behind one with a step; `started`: there was one at all.

    Words such as loss and accuracy are believed, whole rows of ``key: value`` only right behind a step or, about the
    machine, with a clock (a monitor beside the run). Prose with a number in it is not.
    """
    body, tags = line.text[line.body :], [f.tag for f in line.fields if f.role == "metric"]
    words = len(_WORD.findall(body)) - sum(len(_WORD.findall(t)) for t in tags)
    if len(body) > 600 or _PROGRAM.search(body) or words > 4 + len(tags):
        return False
    if any(is_measured(t) for t in tags):
        return bool(line.explicit or line.mode or started or near)
    if near and tags and all((_OF_LOOP if started else _RATE).search(t) for t in tags):
        return True  # nnU-Net: "Current learning rate: 0.01" below "Epoch 3"; TensorFlow's tutorials: "Time taken for 1 epoch: 38.9 secs"
    if near and any(map(is_load, tags)):
        return True
    return whole_row(line) and (near or (timed and any(_SYSTEM.search(t) for t in tags)))
