"""Which folder a file's run lives in: its own without the parts of a run (``train/``, ``checkpoint-500/``, ``wandb/run-*/files``)."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from parsers import rank_names

ONE_RUN = frozenset({"tensorboard", "wandb_offline", "wandb_folder", "trainer_state", "mlflow_files"})
"""The formats whose files in one home are one run: their writers give each run a folder."""

_PART = re.compile(
    r"(?i)(train(ing)?|val(id(ation)?)?|eval(uation)?|test|dev|holdout|logs?|tb(oard)?|tensorboard(_?logs?)?|events?|summar(y|ies)"
    r"|metrics|files|artifacts|output|checkpoints?|ckpts?|weights|plots|plots/metrics|wandb|mlruns|scalars|stats|results|reports?"
    r"|(checkpoint|ckpt|iter|step|epoch|global_step)[-_=]?\d.*|mp_rank_\d+|rank[-_]?\d+|worker[-_]?\d+|node[-_]?\d+|\d+\.\d+|\.hydra|tmp-checkpoint.*)"
)
_SPLIT_FOLDER = re.compile(r"(?i).*[_-](train|val|valid|validation|eval|test)$")  # add_scalars writes Loss_train/, Loss_val/
_STAMPED = re.compile(r"(?i)[A-Z][a-z]{2}\d{2}_\d{2}-\d{2}-\d{2}_.*|\d{8}[-_T]?\d{4,6}.*")  # Hugging Face: runs/May16_18-24-16_host
_WANDB_RUN = re.compile(r"(?:offline-|dry)?run-\d{8}_\d{6}-(\w+)")


def home(path: str) -> str:
    """The folder of the run that a file lies in, as a relative path; empty for the root."""
    parts = list(PurePosixPath(path).parent.parts)
    while parts:
        last = parts[-1]
        if (len(parts) > 1 and parts[-2] == "runs" and _STAMPED.fullmatch(last)) or (
            len(parts) > 1 and rank_names.is_folder(parts[-2], last)
        ):
            parts = parts[:-2]
        elif _PART.fullmatch(last) or _SPLIT_FOLDER.fullmatch(last):
            parts.pop()
        elif match := _WANDB_RUN.fullmatch(last):
            return "/".join([*parts[:-1], match[1]])  # a resumed W&B run is several folders with one id
        else:
            break
    return "/".join(parts)


def inside(inner: str, outer: str) -> bool:
    """Does a folder lie in another one, at any depth?"""
    return inner != outer and (outer == "" or inner.startswith(outer + "/"))


def nearness(a: str, b: str) -> int:
    """How many folders two paths have in common."""
    one, two = PurePosixPath(a).parts, PurePosixPath(b).parts
    return sum(x == y for x, y in zip(one, two, strict=False))
