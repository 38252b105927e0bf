"""The columns of `audit.parquet`, with their types."""

from __future__ import annotations

COLUMNS: dict[str, str] = {
    "id": "string", "path": "string", "framework": "string", "status": "string", "verdict": "string",
    "top_cause": "string", "probability": "float64", "second_cause": "string",
    "spikes_fast": "int64", "spikes_slow": "int64", "spikes_non_recovering": "int64", "first_bad_step": "int64",
    "attempts": "int64", "steps": "int64", "scalars": "int64", "lost": "int64", "seconds": "float64",
    "answer": "string", "grave": "int64", "known": "int64", "loss": "float64", "loss_metric": "string",
    "host": "string", "first_step": "int64", "started": "string", "error": "string", "page": "string",
    "ending": "string", "gpus": "int64", "gpu_hours": "float64", "lost_gpu_hours": "float64",
    "lost_repeated": "float64", "lost_hang": "float64", "lost_diverged": "float64", "lost_at_start": "float64",
    "owner": "string", "project": "string", "job_id": "string", "shard": "string",
    "last_good_checkpoint": "string", "rerun": "string", "why_null": "string", "error_line": "string", "certainty": "string",
}  # fmt: skip
LOSSES = {  # the columns whose sum is lost_gpu_hours, and what each counts
    "lost_repeated": "work done again after a restart",
    "lost_hang": "time in which no step was logged",
    "lost_diverged": "time after the loss diverged",
    "lost_at_start": "time of a run that died before its first step",
}
EXPLAINED = ("gpus", "gpu_hours", "lost_gpu_hours", "owner", "project", "job_id", "last_good_checkpoint", "rerun")  # why_null covers them
