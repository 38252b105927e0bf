"""Several runs that are one configuration under several seeds: one case for the group."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from forensics.run.settings import last_values
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

# what may differ between runs that are "the same but for the seed": names, places, moments, processes
FREE = lazy_re(
    r"(?i)(^|[./_-])(seed|(run_?)?name|launch|attempt|id|path|dir|folder|output|log(ging)?_?dir|file|time(stamp)?|date|host(name)?|user|pid|port|device|run|exp(eriment)?"
    r"|version|uuid|git.*|start(ed)?(_?at)?|cuda.*|local_rank|rank|total_flos|best_.*|shards|num_train_epochs|num_input_tokens_seen|global_step|epoch|stateful_callbacks"
    r"|load_(?:dir|from|path|checkpoint|ckpt)|resume(?:_from)?|restore(?:_from)?|init_from|ckpt|checkpoint)($|[./_-])|(^|[./_-])load$"  # where a launch goes on from
    # of text that is written: transformers' Trainer turns it off in the config that it was given; of the class that saved the weights, which fine-tuning changes
    r"|(^|[./])(use_cache|architectures)$"
)

_COMMAND = lazy_re(r"(?i)(^|[./_])(args|argv|command|cmd)$")
_SEED_FOLDER = lazy_re(r"(?i)((?:.{0,200}[._-])?seed[-_=.]?)\d{1,10}")
_WORD = lazy_re(r"[^\s\"',=\[\]]+")


def are_seeds(runs: Sequence[Run]) -> bool:
    """True where all runs have a config, the configs agree but for seeds, names and places, and some seed differs: a setting, or the
    number of their folders (`seed_0`, `seed_1`) below one config."""
    if len(runs) < 2:
        return False
    configs = [_without_seed(last_values(r)) for r in runs]
    if not all(configs):
        return False
    keys = set().union(*configs)
    differing = {k for k in keys if any(c.get(k) != configs[0].get(k) for c in configs)}
    named = any("seed" in k.lower() for k in differing) or _called_by_seed([PurePath(r.path).parts for r in runs])
    return named and all(FREE.search(k) for k in differing)


def _called_by_seed(paths: list[tuple[str, ...]]) -> bool:
    """Do the paths differ in one folder only, which is called by its seed?"""
    if len({len(parts) for parts in paths}) > 1:
        return False
    differ = [level for level in zip(*paths, strict=True) if len(set(level)) > 1]
    called = [_SEED_FOLDER.fullmatch(name) for name in differ[0]] if len(differ) == 1 else [None]
    return all(called) and len({m[1] for m in called if m is not None}) == 1


def _without_seed(config: dict[str, Any]) -> dict[str, Any]:
    """The command line tells the seed once more: `train.py --seed 101`, `train.py 101`."""
    seeds = {str(v) for k, v in config.items() if "seed" in k.lower()}
    return {k: [w for w in _WORD.findall(str(v)) if w not in seeds] if _COMMAND.search(k) else v for k, v in config.items()}
