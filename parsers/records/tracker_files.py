"""Which file of an offline tracker or a debugging tool a file is, by its content: their parsers and those of JSON and YAML ask here, so that no two claim it."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

_JSON = {
    "comet": re.compile(rb'\s*\{(?=[^\n]*"payload": ?\{)(?=[^\n]*"type": ?"(?:metric_msg|parameter_msg|log_\w+|standard_output|system_\w+|\w+_msg)")'),
    "comet experiment": re.compile(rb'\s*\{[^\n]*"offline_id": ?"[^\n]*"(?:resume_strategy|project_name)"'),
    "neptune": re.compile(rb'\s*\{"obj": ?\{"type": ?"\w+", ?"path": ?\['),
    "clearml": re.compile(rb'\s*\[\{[^\n]{0,200}"type": ?"training_stats_(?:scalar|vector|plot)'),
    "flight recorder": re.compile(rb'\s*\{(?=.*"entries")(?=.*"(?:pg_config|collective_seq_id|nccl_comm_state|pg_status)")', re.DOTALL),
    "determined": re.compile(rb'\s*[\[{](?=.*"total_?[bB]atches(?:Processed)?")(?=.*"(?:avg_?[mM]etrics|batch_?[mM]etrics|validation_?[mM]etrics|trialRunId)")', re.DOTALL),
    "trace": re.compile(rb'\s*\{(?=.*"traceEvents")(?=.*"(?:schemaVersion|deviceProperties|baseTimeNanoseconds)")', re.DOTALL),
    "stacks": re.compile(rb'\s*\[\s*\{(?=.*"thread_id")(?=.*"frames")(?=.*"pid")', re.DOTALL),
    "clearml task": re.compile(rb'\s*\{(?=.*"hyperparams": ?\{)(?=.*"(?:offline_folder|project_name)": ?")', re.DOTALL),
}  # fmt: skip


@lru_cache(maxsize=16)
def kind_of(path: Path, head: bytes) -> str:
    """ "guild", or the key of `_JSON` whose pattern the head has; nothing where it is none of them."""
    if path.parent.name == "attrs" and path.parent.parent.name == ".guild":
        return "guild"
    if head.lstrip()[:1] not in (b"{", b"["):
        return ""
    return next((name for name, pattern in _JSON.items() if pattern.match(head)), "")
