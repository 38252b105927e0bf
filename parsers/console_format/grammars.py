"""Reads one console line: which of its numbers are metrics, under which names, and which say its step.

One scan serves every framework instead of a regex for each: a number belongs to the words before it, back to the last
separator (``|``, ``,``, bracket, two spaces, the number before). That reads ``lm loss: 2.3E+00 |``,
``loss 4.32 (4.56)``, ``step:1/1480 train_loss:7.9`` and ``{'loss': '2.3'}`` alike. Frameworks appear only where
they differ from this:

- ``Epoch(train) [9][100/270]`` (mmengine), ``Train: 3 [ 100/1251 (8%)]`` (timm), ``1|600|Loss: 2.3`` (torchtune),
  ``s:10 tel:3.2`` (llm.c: test loss; ``trl`` train loss).
- A line that opens with a word such as ``validate`` or ``Test:`` gives that word to all of its tags, because the tag
  alone (``loss``) would be taken for the training loss.
- A number in brackets behind a metric is its running mean (AverageMeter): tag ``Loss (avg)``.

A line that was understood becomes a `Shape`: a regex with the line's own words, which reads all later lines like it.
Facts: line formats of 33 frameworks (Megatron-LM training.py, torchtitan components/metrics.py, transformers
trainer_callback.py, ...), each in the tests by a line of its form.
"""

from __future__ import annotations

import re

from parsers.console_format.line_prefix import SUFFIX, Field, Line, prefix, whole
from parsers.records import vocabulary

NUM = (
    r"[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?"
    r"|(?:[nN]a[nN]|NAN|[iI]nf(?:inity)?|INF)(?![A-Za-z]))"
)
_UNIT = (
    r"(?:(?:\s(?!\S+\s*[:=]))?(?:ms|[KMG]i?B|tok/s(?:ec)?|tokens/s(?:ec)?|samples/s(?:ec)?|TFLOPS?|TFLOP/s)"
    r"|%|µs|us|secs?|mins?|[smhkKMGTBxz]|kit|it/s|s/it|it(?= \[|/\d)|/s(?:ec)?(?:/gpu)?)(?![\w])"
)
_TOKEN = re.compile(
    rf"(?P<date>(?<!\w)\d{{4}}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?)?)"
    r"|(?P<clock>(?<![\w.])\d+:\d\d(?::\d\d){0,3}(?:\.\d+)?(?![\w:]))"
    r"|(?P<frac>(?<![\w.@#+-])(?P<it>\d+)(?:\.0)? */ *(?P<total>\d+)(?![\w/]|\.\d))"
    rf"|(?P<avg>(?<!float64)(?<!float32)(?<!tensor)\( *(?P<mean>{NUM}) *%?\))"
    rf"|(?P<num>(?<![\w.@#+-])(?>{NUM}))(?P<unit>{_UNIT})?(?!\w|\.\d|-\d)"
)

_WRAPPED = re.compile(r"(?:(?:np|torch|jnp|numpy)\.)?(?:(?:b?float|int)(?:16|32|64)|tensor|array)\($")
EVAL = {w: w for w in vocabulary.EVALUATION} | {"validate": "validation", "validating": "validation", "evaluate": "evaluation"}
EVAL |= {"evaluating": "evaluation", "testing": "test"}  # as the line says it -> as it is put before the line's tags
_EVAL_WORD = re.compile(rf"(?i)(?:^|[\W_])(?:{'|'.join(EVAL)})(?:[\W_]|$)")
_MODE = re.compile(
    rf"(?i)^[\s*>|=\[(-]*(?P<head>{'|'.join(EVAL)})\b|\((?P<paren>val|test|eval)\)"
    r"|\| (?P<pipe>valid|test) \|"
)
_STEP = {*vocabulary.STEP} - {*vocabulary.BATCH_NUMBER}  # sizes of batches are printed like their numbers
_BAR = re.compile(r"%(\|[^|]*\|)")
_LLM_C = {"tel": "test loss", "trl": "train loss", "eval": "hellaswag acc"}
_PLURAL = {"steps", "iters", "iterations", "updates"}  # behind other settings: how many there will be
_EPOCH = {*vocabulary.EPOCH, "ep"}
_SKIP = re.compile(r"(?i)^(?:eta|v_num|remaining|eta_seconds|pid|seed|port|line|ppo_ep|micro_?step|rank)$")
_CUT = re.compile(r"[|,;{}\[\]\t]|\s-\s|\s{2,}|•|=>|->|:(?:\s|$)|\.\s|\s/\s")
_STOP = {"with", "and", "is", "of", "at", "the", "a", "an", "with:", "avg.", "was", "has", "got"}
STRONG = re.compile(
    r"(?i)(?:^|[\W_])(?:loss(?:es)?|ppl|perplexity|bpb|bpc|nll|acc(?:uracy)?(?:@?\d+)?|top-?[15]|f1"
    r"|bleu|auc|m?AP(?:50)?|miou|psnr|fid|wer|cer|mae|mse|rmse|rewards?|score|return)(?:[\W_]|$)|loss$|^loss|acc$"
)
_VOCABULARY = re.compile(
    r"(?i)loss|acc|ppl|perplex|bpb|norm|reward|mfu|tok|throughput|_lr$|^lr|^(?:dt|time|data|wd|kl"
    r"|grad|wps|ups|wpb|bsz|mem|memory|clip|wall|entropy|score|f1|momentum|tps|tflops|fps|train_wall)$"
)


def _key(gap: str) -> tuple[str, str, bool, bool]:
    """The words before a number -> (key, words before a tight key, has ':' or '=', they touch the number)."""
    gap = _WRAPPED.sub("", gap) if gap.endswith("(") else gap  # np.float64(0.1)
    g = gap.rstrip(" \t\"'[({~$<")
    explicit = g.endswith((":", "="))
    if not explicit:
        key = _CUT.split(g)[-1].strip(" .:=<>*#\"'").lstrip(") ")
        words = [w for w in key.split() if w.lower() not in _STOP]
        return " ".join(words), "", False, False
    tight = len(g) == len(gap.rstrip("\"'[(")) and g[-2:-1] != " "
    g = g[:-1].rstrip(" :=")
    if g.endswith(("'", '"')):
        return g[g.rfind(g[-1], 0, -1) + 1 : -1], "", True, False
    key = _CUT.split(g)[-1].strip(" .:=<>*#\"'").lstrip(") /")
    words = key.split()
    if tight and len(words) > 1:
        return words[-1].rsplit(":", 1)[-1], " ".join(words[:-1]), True, True
    return (key.rsplit(":", 1)[-1] if tight else key), "", True, tight


def _role(key: str, tail: str, first: bool) -> str:
    words = re.sub(r"\([^()]*+\)$", "", key.lower()).split()
    if not words:
        return ""
    last = words[-1].lstrip("#")
    if last in vocabulary.THROUGH_THE_RUN or "_".join(words[-2:]) in vocabulary.THROUGH_THE_RUN:
        return "global"
    if last in _STEP and "per" not in words and "total" not in words and (first or last not in _PLURAL):
        return "step"
    if last in _EPOCH and "per" not in words:
        return "epoch"
    if last == "batch" and tail != "num":
        return "batch"
    return ""


def _is_vector(gap: str, after: str, key: str) -> bool:
    """Lists are no measurements, but learning rates of parameter groups are: their first is the one."""
    opened = gap[-2:].strip()
    several = opened.endswith("[") and after.partition("]")[0].count(",") > 1
    called = re.search(r"\w\($", _WRAPPED.sub("", gap)) is not None  # arguments of a function
    return called or opened == "[[" or (several and not re.search("(?i)lr|learning", key))


def read_line(text: str) -> Line:
    """All numbers of a line with their roles. Tags are the line's own words; the caller decides which to believe."""
    line = prefix(text)
    body = text[line.body :]
    line.bar = "%|" in body or "it [" in body
    line.braces = body.lstrip(" |>-").startswith("{") or "{'" in body or '{"' in body
    mode = _MODE.search(body[:80])
    word = (mode["head"] or mode["paren"] or mode["pipe"]).lower() if mode else ""
    if word and not re.match(r"[_/]", body[mode.end() : mode.end() + 1] if mode else ""):
        line.mode = EVAL[word]
    tokens: list[tuple[re.Match[str], str]] = []  # with the text since the one before
    end = line.body
    drawn = _BAR.search(text) if line.bar else None
    for m in _TOKEN.finditer(text, line.body):
        if drawn is not None and drawn.start(1) <= m.start() < drawn.end(1):
            continue  # tqdm's ASCII bars are drawn with digits
        gap = text[max(end, m.start() - 160) : m.start()]
        if (
            m["num"]
            and m["num"][-1] in "nNfFyY"
            and not gap.rstrip(" '\"[(").endswith((":", "="))
            and ("/" in (text[m.end() : m.end() + 1], text[m.start() - 1]) or not _VOCABULARY.search(_key(gap)[0]))
        ):
            continue  # "number of nan iterations", "NaN/Inf detected": a word, not a value
        tokens.append((m, gap))
        end = m.end()
        if len(tokens) > 1000:
            break  # a printed tensor, not a report
    torchtune = re.match(r"\s*\d+\|\d+\|", body)
    found: dict[str, int] = {}
    keys = [_key(gap) for _, gap in tokens]
    singles = all(" " not in key[0] for key in keys)
    previous = ""  # tag of the metric just before, for its bracketed mean
    for i, (m, gap) in enumerate(tokens):
        if m["date"] or m["clock"]:
            line.fields.append(Field("skip", "clock", m.start(), m.end()))
            previous = ""
            continue
        if m["avg"]:
            tag = f"{previous} (%)" if "%" in m[0] else f"{previous} (avg)"
            line.fields.append(Field("metric" if previous and not gap.strip() else "skip", tag, *m.span("mean")))
            previous = ""
            continue
        key, context, explicit, tight = keys[i]
        key = _LLM_C.get(key, key) if body[:2] == "s:" else key
        role = "step" if key == "s" and tight and i == 0 and body[:2] == "s:" else _role(key, m.lastgroup or "", i == 0)
        previous = ""
        if m["frac"]:
            opened = gap.rstrip()[-1:] in {"[", "(", "|", ":"}
            bare = key.lower() in {"train", "training", *EVAL} or (not key and (opened or "epoch" in found or (i == 0 and not gap.strip())))
            if role in {"global", "step"} or (role == "batch" and "step" not in found):
                found["step"] = len(line.fields)
                roles = ("it", "total")
            elif role == "epoch":
                roles = ("epoch", "epochs")
            elif bare and "step" not in found and (not line.mode or key.lower() not in EVAL):
                roles = ("it", "total") if not line.mode else ("skip", "skip")
                found.setdefault("step" if roles[0] == "it" else "eval", len(line.fields))
            else:
                roles, previous = ("skip", "skip"), key if _VOCABULARY.search(key) else ""
            if "RunningAvgSamplesPerSec" in text:  # DeepSpeed before 0.7: epoch/step
                roles = ("epoch", "step")
            line.fields += [Field(roles[0], key, *m.span("it")), Field(roles[1], key, *m.span("total"))]
            continue
        span, unit = m.span("num"), (m["unit"] or "").strip()
        after = tokens[i + 1][0] if i + 1 < len(tokens) else None
        if torchtune and i < 2:
            line.fields.append(Field("epoch" if i == 0 else "step", key, *span))
            found["epoch" if i == 0 else "step"] = len(line.fields) - 1
        elif unit == "it" and "step" not in found and key.lower() not in EVAL:  # tqdm without a known end
            found["step"] = len(line.fields)
            line.fields.append(Field("step", key, *span))
        elif role and not unit and m["num"][0] != "-" and whole(m["num"]) is not None and not (line.braces and "." in m["num"]):
            if role == "epoch" and "epoch" not in found:
                found["epoch"] = len(line.fields)
                line.fields.append(Field("epoch", key, *span))
            elif role == "global" or (role == "step" and "step" not in found):
                if "step" in found:  # the more specific word wins
                    old = found["step"]
                    line.fields[old] = line.fields[old]._replace(role="skip")
                    if line.fields[old + 1 : old + 2] and line.fields[old + 1].role == "total":
                        line.fields[old + 1] = line.fields[old + 1]._replace(role="skip")
                found["step"] = len(line.fields)
                line.fields.append(Field("step", key, *span))
            else:
                line.fields.append(Field("skip", key, *span))
        elif not unit and key.lower() in {"train", "training", *EVAL} and after is not None and after["frac"]:  # timm
            found["epoch"] = len(line.fields)
            line.fields.append(Field("epoch", key, *span))
        elif explicit and key.lower() in vocabulary.RANK and not line.has("rank"):
            line.fields.append(Field("rank", "", *span))
        elif not key:
            spoken = unit.endswith(("tok/s", "tok/sec", "tokens/s", "tokens/sec", "samples/s", "samples/sec"))
            line.fields.append(Field("metric" if spoken else "skip", unit, *span))
        elif (
            text[m.end("num") :][:2] == "%|"
            or _is_vector(gap, text[m.end() : m.end() + 200], key)
            or (_SKIP.match(key))
            or len(key) > 80
            or len(key.split()) > 7
            or not re.search("[A-Za-z]", key)
        ):
            line.fields.append(Field("skip", key, *span))
        elif (
            explicit or _VOCABULARY.search(key) or (re.fullmatch(r"[A-Za-z][\w/@.-]*", key) and (singles or gap.lstrip()[:1] in {"|", ","}))
        ):
            scaled = unit in SUFFIX and ("consumed_tokens" in text or "token" in key)
            line.scaled = line.scaled or scaled
            line.fields.append(Field("metric", key, span[0], span[1] + scaled))
            line.explicit += explicit
            line.context = line.context or context
            previous = key
        else:
            line.fields.append(Field("skip", key, *span))
    if not found and body.startswith("[") and line.fields and re.match(r"\[\d+\]\t", body):  # XGBoost, LightGBM
        i = next(i for i, f in enumerate(line.fields) if f.start == line.body + 1)
        line.fields[i] = line.fields[i]._replace(role="step")
    if line.mode:
        line.fields = [f if f.role != "metric" or _EVAL_WORD.search(f.tag) else f._replace(tag=f"{line.mode} {f.tag}") for f in line.fields]
    return line


_SETTING = re.compile(r"(?i)scale|weight|coef|_every|interval|scheduler|function|\bfn\b|_type|label|smooth|threshold")
_SYSTEM = re.compile(r"(?i)cpu|gpu|rss|vram|mem|util|temp|power|disk|load")
_WORD = re.compile(r"[A-Za-z_]{2,}")
_PROGRAM = re.compile(r"[({]\w+=|\)\.|==|\\")


def stands_alone(line: Line, near: bool, timed: bool, started: bool) -> bool:
    """Is a line without a step a report? `near`: right behind one with a step; `started`: there was one at all.

    Words such as loss and accuracy are believed, whole rows of ``key: value`` only right behind a step or, about the
    machine, with a clock (a monitor beside the run). Prose with a number in it is not.
    """
    body, tags = line.text[line.body :], [f.tag for f in line.fields if f.role == "metric"]
    words = len(_WORD.findall(body)) - sum(len(_WORD.findall(t)) for t in tags)
    if len(body) > 600 or _PROGRAM.search(body) or words > 4 + len(tags):
        return False
    if any(STRONG.search(t) and not _SETTING.search(t) for t in tags):
        return bool(line.explicit or line.mode or started)
    whole_row = line.explicit > 1 and line.explicit == len(tags)
    return whole_row and (near or (timed and any(_SYSTEM.search(t) for t in tags)))
