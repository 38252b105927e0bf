"""Boosted trees: whether a run grows them, and the learning rate of what each round adds."""

from __future__ import annotations

from forensics.run import settings
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

_TREES = lazy_re(
    r"(?i)(^|[./])(num_leaves|max_leaves|max_depth|min_child_weight|min_data_in_leaf|min_child_samples|min_samples_leaf|n_estimators)$"
)


def trees(run: Run) -> str:
    """The setting that speaks of trees, where no batches are drawn; else nothing."""
    told = next((x.key for x in settings.every(run) if _TREES.search(x.key)), "")
    return "" if settings.setting(run, "batch_size") else told


def rate(run: Run) -> tuple[settings.Setting | None, float | None]:
    """The learning rate of the boosting as it was set and as a number; that of another model ("mlp.lr" beside "lgbm.num_leaves") is none."""
    told = next(iter(settings.named(run, "eta")), None) or settings.setting(run, "lr")
    if told is None or told.key.rpartition(".")[0] != trees(run).rpartition(".")[0]:
        return None, None
    return told, settings.as_number(told.value)
