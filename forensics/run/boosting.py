"""Whether the model is a sum of trees, to which each round adds one."""

from __future__ import annotations

from forensics.run import settings
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

_TREES = lazy_re(
    r"(?i)(^|[./])(num_leaves|max_leaves|max_depth|min_child_weight|min_data_in_leaf|min_child_samples|min_samples_leaf|n_estimators)$"
)


def boosted(run: Run) -> bool:
    """Whether config names what only trees have, and no batches."""
    return any(_TREES.search(x.key) for x in settings.every(run)) and not settings.setting(run, "batch_size")
