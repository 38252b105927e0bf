"""Which split a tag is of, and which of the losses of a file is the headline. A helper of parsers.names."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from parsers.lazy_regex import lazy_re
from parsers.name_rules import LONGEST, data, first, words
from parsers.records.vocabulary import EVALUATION

_EVAL_WORDS = "|".join((*EVALUATION, "held out", "hold out"))
EVAL = lazy_re(
    rf"\b({_EVAL_WORDS}|tel)\b|^(?:te|va)\b(?=[ /])|(?<!\bloss[ /])(?<=[ /])te$|(?<=[ /])va$"
)  # "te_loss", "nll_te", "acc@va"; "loss_te" is that of a text encoder
TRAIN = lazy_re(r"\b(train|training|trn|tr|trl|fit)\b")
SPLIT_FAMILIES = ("loss.", "ppl.", "bpb.", "acc.")  # the name itself says which split
_EVAL_FOLDER = lazy_re(r"(val|valid|validation|eval|evaluation|dev|holdout)([_-].*)?$")


def split(text: str, folder: str) -> str:
    if EVAL.search(text):
        return "eval"
    return "train" if TRAIN.search(text) else folder_split(folder)


@lru_cache(maxsize=4096)
def folder_split(folder: str) -> str:
    """Of the nearest folder that names a split; "test" counts only as the nearest, for runs are called that too."""
    parts = [p for p in folder[-LONGEST:].replace("\\", "/").lower().split("/") if p not in ("", ".")]
    if parts and parts[-1] in ("test", "testing"):
        return "eval"
    for part in reversed(parts):
        if _EVAL_FOLDER.match(part):
            return "eval"
        if part in ("train", "training"):
            break
    return "train"


def home(path: str) -> str:
    """What names the split of a file's metrics: its folder, or the file itself where it is called after what is held out (``eval.csv``, ``val_log.jsonl``);
    ``dev.log`` alone may be that of developers."""
    folder, _, base = path.rpartition("/")
    stem = base.partition(".")[0].lower()
    return f"{folder}/{stem}" if stem != "dev" and _EVAL_FOLDER.match(stem) else folder


def with_folder_key(tag: str, folder: str) -> str:
    """``SummaryWriter.add_scalars("loss", {"val": x})`` writes "loss" into a folder "loss_val": -> "loss/val"."""
    last, start = last_folder(folder), folder_start(tag)
    return f"{tag}/{last[len(start) :]}" if len(last) > len(start) and last.startswith(start) else tag


def last_folder(folder: str) -> str:
    return folder.rstrip("/").rsplit("/", 1)[-1]


def folder_start(tag: str) -> str:
    return tag.replace("/", "_") + "_"


class Loss(NamedTuple):
    split: str
    rank: int  # 0 calls itself total (or nothing), 1 a likelihood, 2 has some other name, 3 a known term of a sum
    core: str  # the words that tell it from other losses


@cache
def _loss_words(kind: str) -> frozenset[str]:
    return frozenset(data()["loss"][kind].split())


@lru_cache(maxsize=65536)
def _loss(text: str, folder: str) -> Loss:
    left = [w for w in EVAL.sub(" ", text).replace("/", " ").split() if w not in _loss_words("noise") and w != "_"]
    names = {w for w in left if not w[0].isdigit()}
    if names <= _loss_words("total") | ({"weighted"} if "total" in names else set()):
        rank = 1 if left and not names else 0  # TensorFlow 1 calls a second "loss" "loss_1"
    elif names <= _loss_words("main") | _loss_words("total"):
        rank = 1
    else:
        rank = 3 if names & _loss_words("aux") else 2
    return Loss(split(text, folder), rank, " ".join(left))


def term(tag: str) -> Loss:
    """The split and the words of a loss or a term of it."""
    return _loss(words(tag), "")


def is_term(loss: Loss) -> bool:
    """Whether all its words are those of the terms of a sum: what needs no word that says loss."""
    return bool(loss.core) and set(loss.core.split()) <= _loss_words("aux")


class Losses(NamedTuple):
    """What a source has: the cores of its losses, all of them and by (split, rank); and whether it is of reinforcement
    learning, where the losses of policy and value are the headline."""

    cores: frozenset[str]
    by: dict[tuple[str, int], set[str]]
    rl: bool

    def of(self, split: str) -> set[str]:
        return set().union(*(cores for (side, _), cores in self.by.items() if side == split))


@lru_cache(maxsize=256)
def _losses(siblings: frozenset[str], folder: str) -> Losses:
    by: dict[tuple[str, int], set[str]] = {}
    rl = False
    for text in map(words, siblings):
        name = (first(text, siblings, data()["rule"]) or {"name": "other"})["name"]
        rl = rl or name.startswith("rl.loss")
        if name == "loss":
            loss = _loss(text, folder)
            by.setdefault((loss.split, loss.rank), set()).add(loss.core)
    return Losses(frozenset().union(*by.values()), by, rl)


def which_loss(text: str, folder: str, siblings: frozenset[str]) -> str:
    mine = _loss(text, folder)
    headline = f"loss.{mine.split}"
    if not siblings:
        return "loss.aux" if mine.rank == 3 else headline
    losses = _losses(siblings, folder)
    named = losses.by.get((mine.split, 2), set())
    best = min((rank for split, rank in losses.by if split == mine.split), default=mine.rank)
    numbered = {core for core in losses.by.get((mine.split, 1), set()) if core.replace(" ", "").isdigit()}
    if mine.core in numbered and best == 1 and len(numbered) > 1:
        return "loss.aux"  # loss_0 and loss_1: one of each optimizer or head, none of them the whole
    if mine.rank == 0 or mine.rank == best == 1:
        return headline
    if losses.cores <= {mine.core} and not losses.rl and not _has_opponent(mine.core, siblings):
        return headline  # the only loss there is, on one split or both
    if mine.rank == best == 2 and _played_by(losses) + _tells_apart(siblings) >= 2:
        return "loss.aux"  # beside those of a generator and a discriminator no loss is the whole, whatever the players are called
    if (
        mine.split == "train"
        and losses.of("train") == {mine.core}
        and any(set(c.split()) < set(mine.core.split()) for c in losses.of("eval"))
    ):
        return headline  # "pixel_ce" beside "val/ce": the only one of the training, and the evaluation has it too
    other = "train" if mine.split == "eval" else "eval"
    terms = {core for (split, _), cores in losses.by.items() if split == other for core in cores}
    if mine.rank == best == 3 and mine.split == "eval" and mine.core not in terms and _one_of_many(mine.core, losses.by["eval", 3]):
        return headline  # g0, g1, g2 of the evaluation alone: data sets that are counted
    if mine.rank == best == 2 and not losses.rl and (named <= {mine.core} or (mine.split == "eval" and mine.core not in terms)):
        return headline  # several named losses of the evaluation alone are data sets, not terms of a sum
    return "loss.part" if mine.rank == 2 and best < 2 and _PART.search(text) else "loss.aux"


def _one_of_many(core: str, cores: set[str]) -> bool:
    """Is it a word with a number, beside the same word with others?"""
    word, _, number = core.rpartition(" ")
    return bool(word) and number.isdigit() and any(c != core and c.rpartition(" ")[0] == word for c in cores)


def _played_by(losses: Losses) -> int:
    """How many losses name a side of networks that play against each other."""
    return sum(1 for core in losses.cores if _loss_words("played") & set(core.split()))


def _tells_apart(siblings: frozenset[str]) -> bool:
    """Does something score real samples beside generated ones?"""
    logged = {word for tag in siblings for word in words(tag).replace("/", " ").split()}
    return {"real", "fake"} <= logged


def _has_opponent(core: str, siblings: frozenset[str]) -> bool:
    """Is it the loss of one player, as "D/loss", beside what is logged of another one ("G/adv")?"""
    players, own = _loss_words("played"), set(core.split())
    begin = {word for tag in siblings for word in words(tag).replace("/", " ").split()[:1]}
    return not players.isdisjoint(own) and not begin.isdisjoint(players - own)


def lead(tags: Iterable[str]) -> str | None:
    """Of terms whose sum is not logged, the one that stands for it; None where no term does, or networks play against each other."""
    order = data()["loss"]["lead"].split()
    named = {tag: _loss(words(tag), "") for tag in tags}
    if any(_loss_words("played") & set(x.core.split()) for x in named.values()):
        return None
    places = [
        (x.split == "eval", min(order.index(w) for w in found), tag)
        for tag, x in named.items()
        if (found := set(x.core.split()) & set(order))
    ]
    return min(places)[2] if places else None


def is_likelihood(tag: str) -> bool:
    """Is nothing in the name against a likelihood, whose value at chance is known? An "autoencoder loss" has a name of its own."""
    return _loss(words(tag), "").rank < 2


_PART = lazy_re(rf"\bloss(es)?[ /]({_EVAL_WORDS}|train)?[ /]?[^/]+$|^({_EVAL_WORDS}|train)[ /].+[ /]loss$")
