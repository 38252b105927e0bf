"""Which folder a file's run lives in: its own without the parts of a run (``train/``, ``checkpoint-500/``, ``wandb/run-*/files``)."""

from __future__ import annotations

import hashlib
from itertools import takewhile
from pathlib import PurePosixPath

from parsers.lazy_regex import lazy_re

ONE_RUN = frozenset({"tensorboard", "wandb_offline", "wandb_folder", "trainer_state", "mlflow_files"})
"""The formats whose files in one home are one run: their writers give each run a folder."""

TRACKERS = frozenset({"wandb_offline", "wandb_folder", "mlflow_files", "mlflow_sqlite"})
"""The formats that give each run an id: their files in one home are of one id."""

LONGEST = 200  # bytes of an id; a folder's name may have 255

_PART = lazy_re(
    r"(?i)(train(ing)?|val(id(ation)?)?|eval(uation)?|test|dev|holdout|logs?|tb(oard)?|tensorboard(_?logs?)?|events?|summar(y|ies)"
    r"|metrics?|resources|files|artifacts|output|checkpoints?|ckpts?|weights|plots|plots/metrics|wandb|mlruns|scalars|vis_data|catboost_info|stats|results|reports?"
    r"|(checkpoint|ckpt|iter|step|epoch|global_step)[-_=]?\d.*|mp_rank_\d+|rank[-_]?\d+|worker[-_]?\d+|node[-_]?\d+|\d+\.\d+|\.hydra|tmp-checkpoint.*)"
)
_SPLIT_FOLDER = lazy_re(r"(?i).*[_-](train|val|valid|validation|eval|test)$")  # add_scalars writes Loss_train/, Loss_val/
_STAMPED = lazy_re(r"(?i)[A-Z][a-z]{2}\d{2}_\d{2}-\d{2}-\d{2}_.*|\d{8}[-_T]?\d{4,6}.*")  # Hugging Face: runs/May16_18-24-16_host
_ELASTIC_TRY = lazy_re(r"attempt_\d{1,9}")  # torchrun --log-dir: <run id>_<random>/attempt_0/<rank>
_ELASTIC_ID = lazy_re(r"\w{1,200}_\w{8}")
_WANDB_RUN = lazy_re(r"(?:offline-|dry)?run-\d{8}_\d{6}-(\w+)")
_NUMBERED = lazy_re(r"(.*[_-])(\d{1,9})\.\w+")


def home(path: str) -> str:
    """The folder of the run that a file lies in, as a relative path; empty for the root."""
    parts = list(PurePosixPath(path).parent.parts)
    while parts:
        last = parts[-1]
        if len(parts) > 1 and parts[-2] == "runs" and _STAMPED.fullmatch(last):
            parts = parts[:-2]
        elif _PART.fullmatch(last) or _SPLIT_FOLDER.fullmatch(last):
            parts.pop()
        elif len(parts) > 1 and last.isdecimal() and _ELASTIC_TRY.fullmatch(parts[-2]):
            parts = _above_ranks(parts[:-2])
        elif match := _WANDB_RUN.fullmatch(last):
            return "/".join([*parts[:-1], match[1]])  # a resumed W&B run is several folders with one id
        else:
            break
    return "/".join(parts)


def launch(path: str) -> str:
    """The folder that W&B made for the launch which wrote a file; empty where it lies in none."""
    parts = PurePosixPath(path).parts
    return next(("/".join(parts[: i + 1]) for i, part in enumerate(parts[:-1]) if _WANDB_RUN.fullmatch(part)), "")


def _above_ranks(parts: list[str]) -> list[str]:
    """The folder that torchrun was started in, where the folder of its logs is called so."""
    if parts and _ELASTIC_ID.fullmatch(parts[-1]):
        parts = parts[:-1]
    return parts[:-1] if parts and "log" in parts[-1].lower() else parts


def series_name(path: str, step: int) -> str:
    """The name without its number of a file that is called by its one step or epoch (``metrics_epoch_3.json``), else ""."""
    m = _NUMBERED.fullmatch(path)
    return m[1] if m and int(m[2]) - step in (0, 1) else ""


def inside(inner: str, outer: str) -> bool:
    """Does a folder lie in another one, at any depth?"""
    return inner != outer and (outer == "" or inner.startswith(outer + "/"))


def nearness(a: str, b: str) -> int:
    """How many folders two paths have in common, from the top down."""
    one, two = PurePosixPath(a).parts, PurePosixPath(b).parts
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False)))


def run_id(path: str) -> str:
    """The id of the run that a path leads to, a name that one folder can have: long ones end in a hash of the whole."""
    name = path.replace("/", "__")
    raw = name.encode("utf-8", "surrogateescape")
    return name if len(raw) <= LONGEST else f"{name[:40]}-{hashlib.sha256(raw).hexdigest()[:12]}"
