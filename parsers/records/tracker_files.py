"""Which file of an offline tracker or a debugging tool a file is, by its content: their parsers and those of JSON and YAML ask here, so that no two claim it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

# Kind -> how the text begins, and groups of words: one of each group stands in the head. Words, for no expression takes time by the square of a text then.
_JSON: dict[str, tuple[bytes, tuple[tuple[bytes, ...], ...]]] = {
    "comet": (b"{", ((b'"payload"',), (b'"metric_msg"', b'"parameter_msg"', b'"log_other"', b'"standard_output"', b'"system_details_msg"'))),
    "comet experiment": (b"{", ((b'"offline_id"',), (b'"resume_strategy"', b'"project_name"'))),
    "neptune": (b'{"obj":', ((b'"type"',), (b'"path"',), (b'"version"',))),
    "clearml": (b"[{", ((b'"type": "training_stats_',), (b'"variant"',))),
    "flight recorder": (b"{", ((b'"entries"',), (b'"pg_config"', b'"collective_seq_id"', b'"nccl_comm_state"', b'"pg_status"'))),
    "determined": (b"", ((b'"totalBatches', b'"total_batches'), (b'"avgMetrics"', b'"avg_metrics"', b'"batchMetrics"', b'"batch_metrics"', b'"trialRunId"'))),
    "trace": (b"{", ((b'"traceEvents"',), (b'"schemaVersion"', b'"deviceProperties"', b'"baseTimeNanoseconds"'))),
    "stacks": (b"[", ((b'"thread_id"',), (b'"frames"',), (b'"pid"',))),
    "clearml task": (b"{", ((b'"hyperparams"',), (b'"offline_folder"', b'"project_name"'), (b'"execution"', b'"script"'))),
}  # fmt: skip


@lru_cache(maxsize=16)
def kind_of(path: Path, head: bytes) -> str:
    """ "guild", or the key of `_JSON` whose pattern the head has; nothing where it is none of them."""
    if path.parent.name == "attrs" and path.parent.parent.name == ".guild":
        return "guild"
    text = head.lstrip()
    if text[:1] not in (b"{", b"["):
        return ""
    return next(
        (kind for kind, (start, groups) in _JSON.items() if text.startswith(start) and all(any(w in head for w in g) for g in groups)), ""
    )
