"""Reads settings that programs print before they train: argument dumps, ``Namespace(...)``, ``key: value`` headers.

- Megatron-LM and GPT-NeoX: ``------ arguments ------`` then ``  lr ........ 0.1`` (NeoX glues ``updated`` or
  ``default`` to the value: ``64..........updated``); DeepSpeed prints such dots behind ``config.py:999:print]``.
- argparse: ``Namespace(lr=0.1, betas=[0.9, 0.95])`` in one line.
- ``config: steps=800 lr=0.003``, ``train_batch_tokens:524288 train_seq_len:1024``, and indented ``  key: value`` under ``Hyperparameters:``.
- Sentences of Keras, StyleGAN, XGBoost and LightGBM; ``nr. of training examples 6250``. A number that is a result by its name is no setting.
- llm.c: ``| learning rate (LR)    | 0.003 |``, a row a setting; transformers: ``  Num examples = 12,000`` below ``***** Running training *****``.

Values become JSON numbers, booleans or text; nothing is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.console_format.grammars import is_measured
from parsers.console_format.worded_settings import OPTIMIZERS, in_words, of_inputs
from parsers.lazy_regex import lazy_re
from parsers.records import vocabulary

DOTS = lazy_re(r"^\s*+(?:\[[^\]]*\]\s*+)*+(?P<key>[A-Za-z_][\w.-]*) (?: ?)(?P<dots>\.{2,}+) ?(?P<value>.*)$")
_NEOX_LONG = lazy_re(r"^\s+(?P<key>[A-Za-z_]\w*)  (?P<value>\S.*)$")
BLOCK = lazy_re(r"^\s*-{5,} (?P<end>end of )?[\w -]*arguments -{5,}")
HEADER = lazy_re(
    r"(?i)^\W*+(?:hyper-?parameters|arguments|args|config(?:uration)?|settings|options"
    r"|(?:(?<=\*)|(?<=\* ))running training(?= ?\*))\W*+$"
)
_NAMESPACE = lazy_re(r"\b(?:Namespace|TrainingArguments|\w*(?:Config|Args|Arguments))\(")
# a value that nothing proper follows is taken all the same, without an end: else each "=" in it would be tried anew
_ARGUMENT = lazy_re(
    r"\b(?P<key>[A-Za-z_]\w*+)=(?P<value>(?:'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"|\[[^\[\]]*+\]"
    r"|\{[^{}]*+\}|\([^()]*+\)|<[^<>]*+>)(?=, |,?$)|[^,()\[\]{}]++)(?P<end>, |,?$)?"
)
_SCRIPT = lazy_re(r"(?:^|\s)(?!['\"\[])[\w./~-]+\.py(?=\s+-)|(?:^|\s)-m\s+[\w.]+(?=\s+-)")
_OPTION = lazy_re(r"--?(?P<key>[A-Za-z][\w.-]*)(?:=(?P<value>\S*))?")
_PAIR = lazy_re(
    r"(?:^|\s)(?P<key>[A-Za-z_][\w.-]*)[:=](?P<value>(?:'[^']*+'|\"[^\"]*+\"|\[[^\[\]]*+\]|\([^()]*+\))(?=[,;]?(?:\s|$))|[^\s:=]+)"
)
_STATED = lazy_re(
    r"(?i)(?:^|^[^=]{0,80}?[-|>:] )\W*(?:hyper-?param(?:eter)?s|arguments|args|flags|config(?:uration)?|settings|options)\s*[:=]\s*(?=-{0,2}\w)"
)
_ENTRY = lazy_re(r"(?<![\w.-])-{0,2}(?P<key>[A-Za-z_][\w.-]*)(?:=|: ?)(?P<value>[^\s:=]+)$")  # its end may be all that a piece gives
_IN_WORDS = lazy_re(r"(?P<key>[A-Za-z][A-Za-z_ ]{0,30}) (?P<value>-?\d[\d.]*(?:e[-+]?\d+)?)$")
_OF_TRAINING = lazy_re(
    r"(?i)(?:base_?|peak_?|max_?)?(?:lr|learning[ _]?rate|eta0?)|(?:train_?)?batch(?:[ _]?size)?|bs|optim(?:izer)?|weight[ _]?decay|wd|momentum|dropout|"
    r"(?:num[ _]?)?epochs|warmup\w*|seed"
)
_OF_A_PLAN = lazy_re(r"epochs|steps|warmup\w*|seed|optim(?:izer)?|\w*accum\w*")
_COMMA = lazy_re(r", (?![^\[\]]{0,300}\])")  # "classes ['disc', 'box'], batch 8": those of a list part no settings
_WORD = lazy_re(r"[A-Za-z]+")
_SAYS_CONFIG = lazy_re(r"^\s*(?:\[config\] |\[[a-z_]{2,20}\] {2,})(?=[\w.-]+: )")  # Marian; a logger's name before indented lines
_BULLET = lazy_re(r"^\s*+(?:(?:\|\s+)?[>*•-]\s+)+")
_SCORE = lazy_re(r"(?i)(?:^|[\W_])(?:m?io_?u|dice|fid(?:\d+k)?)(?:[\W_]|$)")
_SHARE = lazy_re(r"(?i)\b(?:precision|recall|sensitivity|specificity|error)\b")
# "nr. of training examples 6250"
_HOW_MANY = lazy_re(r"(?i)^\W*+(?:nr|num|number)\b\.?+ (?:of )?(?P<key>[a-z][a-z /_-]{2,40}?) (?P<value>\d[\d,]*+)\.?$")
# "input features: mean 152.3, std 81.2", "X mean/std = 152.3 / 81.2"
_STATISTICS = lazy_re(
    r"(?i)^\W*+(?P<of>[a-z][\w :]{0,50}?)[\s:]{1,3}mean(?: ?/ ?std)?[\s:=]{1,3}(?P<mean>-?\d[\d.]*+(?:e[-+]?\d+)?)"
    r"[\s,;|/]{1,4}(?:and )?(?:std[\s:=]{1,3})?(?P<std>\d[\d.]*+(?:e[-+]?\d+)?)\b"
)
# XGBoost and LightGBM
_PATIENCE = lazy_re(r"(?:Will train|Training) until .{1,80}? (?:hasn't|haven't|don't) improved? (?:in|for) (\d+) rounds\b")
# what widespread programs say in a sentence, and the names of the numbers in it
_SENTENCES = {
    lazy_re(r"Train on (\d+) samples(?:, validate on (\d+) samples)?"): ("training samples", "validation samples"),  # Keras 2
    lazy_re(r"Training for (\d+) kimg\.*"): ("total_kimg",),  # StyleGAN
    lazy_re(r"Let's use (\d+) GPUs!"): ("GPUs",),  # the tutorial of DataParallel
    lazy_re(r"Using (?:device|DEVICE):? (\S+)"): ("device",),
}
_NEXT_SETTING = lazy_re(r",\s(?=[A-Za-z]\w{0,40}(?: \w{1,20}){0,3} = )")  # "learning_rate = 0.012, evaluation examples = 320"
_LINE = lazy_re(r"^(?P<key>[A-Za-z_][\w ./()-]{0,60}?)\s*+[:=]\s*+(?P<value>\S.*)$")
_BOXED = lazy_re(r"^\|\s*+(?P<key>[A-Za-z_][\w .-]{0,60}?)(?: [A-Z]| \([^()|]{1,20}\))?\s*+\|\s*+(?P<value>[^\s|]{1,40})\s*+\|$")
PLACES = frozenset({*vocabulary.SURE_STEP, "epoch", "batch"}) - {"steps", "iterations", "iters"}
# "iter 20/900 ctc=5.7 lr=0.001", "step 20 ...": such a line measures; "steps 800" is a plan
_IN_PLACE = lazy_re(
    r"(?i)^\s*\[\d{1,12}\]\s{1,4}[\w/]{1,40}=|(?<![^\s:])(?:\d{1,9}-)?(?:iter|iteration|step|it|update|upd|epoch|ep|batch)\b[ :#=([]{0,3}\d{1,12}/\d|(?<!\S)(?:iter|iteration|step|it|upd) \d{1,12}\b"
)
_PLAIN = lazy_re(r"(?i)[-+]?(?:\d[\d,]*(?:\.\d*)?(?:e[-+]?\d+)?|\.\d+)|true|false|none|null|nan|inf|[\w./-]{1,99}\.(?:pth?|ckpt|h5)")


def value_of(text: str) -> object:
    """'1e-4' -> 0.0001, 'True' -> True, '12,000' -> 12000, \"'adamw'\" -> 'adamw', else the text."""
    text = text.strip().rstrip(",")
    if text in {"True", "true", "False", "false"}:
        return text.lower() == "true"
    if text in {"None", "null"}:
        return None
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    plain = text.replace(",", "") if re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", text) else text
    for kind in (int, float):
        try:
            return kind(plain) if len(plain) < 300 and plain[:1] in "-+.0123456789ni" and "_" not in plain else text
        except ValueError:
            continue
    return text


def dotted(text: str, block: bool) -> tuple[str, object] | None:
    """A row of a dotted argument dump; outside a block only DeepSpeed's, which say where they come from."""
    if not block and "config.py" not in text:
        return None
    text = text.rstrip()
    m = DOTS.match(text)
    if m is None or (len(m["dots"]) < 3 and not block and "print]" not in text):
        m2 = _NEOX_LONG.match(text) if block else None
        said = without_origin(m2["value"]) if m2 else None
        return (m2["key"], value_of(said)) if m2 and said else None
    said = without_origin(m["value"]) if block else None
    return m["key"], value_of(m["value"] if said is None else said)


def without_origin(value: str) -> str | None:
    """What stands before the dots and the word by which GPT-NeoX says where a value is from; None without the word."""
    word = next((w for w in ("updated", "default") if value.endswith(w)), None)
    return value[: -len(word)].rstrip(".") if word else None


def namespace(text: str) -> Iterator[tuple[str, object]]:
    text = text[:200_000].rstrip()
    if text.endswith(")") and "=" in text and (m := _NAMESPACE.search(text)):
        found = _ARGUMENT.finditer(text[m.end() : -1])
        pairs = [(a["key"], value_of(a["value"])) for a in found if a["end"] is not None]
        yield from pairs if len(pairs) > 1 else []


def stated(text: str, *, started: bool = True) -> list[tuple[str, object]]:
    """``config: steps=800 lr=0.003``: a line that says of itself that it lists settings, or shows it by a switch, and holds nothing else; before
    training ``started`` also one that names settings alone (`listed`), without a place in the run."""
    if len(text) > 20_000:
        return []
    if (m := _PATIENCE.match(text)) is not None:
        return [("early_stopping_rounds", value_of(m[1]))]
    if not started and of_inputs(text):  # "batch 0: x min 0.00 max 255.00": no step of the training
        return header(text, False)
    if (m := _STATED.match(text)) is None:
        return _with_switches(text) or ([] if started else _placeless(listed(text)))
    rest = text[m.end() :]
    pairs = only_pairs(rest) or (_flags(rest) if rest.startswith("-") else [])
    return pairs if len(pairs) > 1 else []


def _flags(text: str) -> list[tuple[str, object]]:
    """``--batch=128 --lr=0.003``: the settings of a text that holds nothing else."""
    words = [_OPTION.fullmatch(w) for w in text.split()]
    return [(m["key"], True if m["value"] is None else value_of(m["value"])) for m in words if m is not None] if all(words) else []


def only_pairs(text: str) -> list[tuple[str, object]]:
    """``steps=800 lr=0.003``: the settings of a text that holds nothing else."""
    rest = _PAIR.sub("", text).strip(" ,;")
    return [] if rest else [(p["key"], value_of(p["value"])) for p in _PAIR.finditer(text)]


def _with_switches(text: str) -> list[tuple[str, object]]:
    """``use_gpu: True, batch_size: 32, epochs: 20``: a switch among at least three, and no place of a run: "epochs" is the plan."""
    if "True" not in text and "False" not in text:
        return []
    pairs = _placeless(listed(text))
    return pairs if any(isinstance(value, bool) for _, value in pairs) else []


def _placeless(pairs: list[tuple[str, object]]) -> list[tuple[str, object]]:
    """The settings of a line that names no place of a run; none of another line. Beside a plan ("epochs=240", "warmup=40") a batch is a size."""
    keys = {vocabulary.plain(key) for key, _ in pairs}
    return [] if keys & (PLACES - {"batch"} if any(map(_OF_A_PLAN.fullmatch, keys)) else PLACES) else pairs


def command(text: str) -> Iterator[tuple[str, object]]:
    """``python train.py --epochs 14 --lr=0.1 --fp16``: the options behind a script, where there are at least two."""
    m = _SCRIPT.search(text[:20_000])
    if m is None or ".py" not in text:
        return
    found: dict[str, list[str]] = {}
    is_open = False  # the last option takes the words behind it
    for word in text[m.end() : 20_000].split():
        if option := _OPTION.fullmatch(word):
            is_open = option["value"] is None
            found[option["key"]] = [] if is_open else [option["value"]]
        elif is_open:  # else an argument by its place
            found[next(reversed(found))].append(word)
    if len(found) > 1:
        yield from ((key, value_of(" ".join(words)) if words else True) for key, words in found.items())


def listed(text: str) -> list[tuple[str, object]]:
    """Settings among words: ``>>> lr: 0.002, epochs: 14``, ``--lr=0.1 --clip=5``, ``# train: sgd lr=0.1 clip=0``, ``8 envs, lr 0.1, gamma 0.9``.

    At least three, of which one is a setting of every training, and no more other pieces than these."""
    if _IN_PLACE.search(text):
        return []
    commas = ", " in text
    pieces = _COMMA.split(text) if commas else text.split()
    found = [_ENTRY.search(p) or (_IN_WORDS.match(p) if commas else None) for p in map(str.strip, pieces)]
    pairs = [(m["key"].lstrip("-"), value_of(m["value"])) for m in found if m is not None]
    measured = any(is_measured(key) and not isinstance(value, int) for key, value in pairs)  # "train=48 valid=440" counts samples
    told = any(_OF_TRAINING.fullmatch(key) for key, _ in pairs) and not measured
    if not told or len(pairs) < 3 or 2 * len(pairs) < len(pieces):
        return []
    named = [w for w in _WORD.findall(text) if w.lower() in OPTIMIZERS]  # "# train: sgd lr=0.1", "optim: adam lr=0.4"
    return [("optimizer", named[0]), *pairs] if len(named) == 1 and not any("optim" in key.lower() for key, _ in pairs) else pairs


def is_result(key: str, value: object) -> bool:
    """Is a number, or a list of them, a result by its name? A ``loss`` that is a word is set, a ``Precision`` of 16 too."""
    if isinstance(value, str) and not value.startswith("["):
        return False
    share = isinstance(value, float) and 0 <= value <= 1 and _SHARE.search(key) is not None
    return (is_measured(key) or share or _SCORE.search(key) is not None) and not isinstance(value, bool)


def _said(text: str) -> list[tuple[str, object]]:
    """Settings in a sentence."""
    if (m := _HOW_MANY.match(text)) is not None:
        return [(f"number of {m['key'].strip()}", value_of(m["value"]))]
    if not text.startswith(("Train", "Let's use", "Using ")):
        return []
    found = ((keys, m) for pattern, keys in _SENTENCES.items() if (m := pattern.fullmatch(text.strip())) is not None)
    return next(([(k, value_of(v)) for k, v in zip(keys, m.groups(), strict=True) if v is not None] for keys, m in found), [])


def header(text: str, indented: bool) -> list[tuple[str, object]]:
    """Settings before the first step: ``a:1 b:2``, ``a=1``, several among words, or, indented under a heading, any ``key: value``."""
    return [(key, value) for key, value in _in_header(text, indented) if not is_result(key, value)]


def _in_header(text: str, indented: bool) -> list[tuple[str, object]]:
    text, named = _SAYS_CONFIG.subn("", text)
    text = _BULLET.sub("", text)
    if said := _said(text):
        return said
    if len(text) > 600 or text.rstrip()[-1:] in {",", "(", ")", "{"} or "://" in text:
        return []
    pairs = list(_PAIR.finditer(text))
    rest = _PAIR.sub("", text).strip()
    if pairs and (not rest or re.fullmatch(r"[\w-]+:", rest)):  # "X_train: mean=152.3 std=81.2" says of what they are
        return [(f"{rest[:-1]}.{p['key']}".lstrip("."), value_of(p["value"])) for p in pairs]
    if (m := _BOXED.match(text.strip())) and _PLAIN.fullmatch(m["value"]) and not is_measured(m["key"]):
        return [(m["key"].strip().replace(" ", "_"), value_of(m["value"]))]
    if "std" in text and (m := _STATISTICS.match(text)) is not None:
        return [(f"{m['of']}.{what}", value_of(m[what])) for what in ("mean", "std")]
    several = [_LINE.match(part) for part in _NEXT_SETTING.split(text.strip())]
    if len(several) > 1 and all(m and _PLAIN.fullmatch(m["value"]) for m in several):
        return [(m["key"].strip(), value_of(m["value"])) for m in several if m]
    if (m := several[0]) and (indented or named or _PLAIN.fullmatch(m["value"].rstrip(","))) and len(m["key"].split()) < 6:
        return [(m["key"].strip(), value_of(m["value"]))]
    return listed(text) or in_words(text)
