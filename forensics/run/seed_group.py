"""Several runs that are one configuration under several seeds: one case for the group."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.run.settings import last_values
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

# what may differ between runs that are "the same but for the seed": names, places, moments, processes
FREE = lazy_re(
    r"(?i)(^|[./_-])(seed|(run_?)?name|id|path|dir|folder|output|log(ging)?_?dir|file|time(stamp)?|date|host(name)?|user|pid|port|device|run|exp(eriment)?"
    r"|version|uuid|git.*|start(ed)?(_?at)?|cuda.*|local_rank|rank|total_flos|best_.*|shards|num_train_epochs|num_input_tokens_seen|global_step|epoch|stateful_callbacks"
    r"|load_(?:dir|from|path|checkpoint|ckpt)|resume(?:_from)?|restore(?:_from)?|init_from|ckpt|checkpoint)($|[./_-])|(^|[./_-])load$"  # where a launch goes on from
)


def are_seeds(runs: Sequence[Run]) -> bool:
    """True where all runs have a config, the configs agree but for seeds, names and places, and some seed differs."""
    if len(runs) < 2:
        return False
    configs = [last_values(r) for r in runs]
    if not all(configs):
        return False
    keys = set().union(*configs)
    differing = {k for k in keys if len({c.get(k) for c in configs}) > 1}
    return any("seed" in k.lower() for k in differing) and all(FREE.search(k) for k in differing)
