"""What a run does after each evaluation: keep the best loss, keep a summary."""

import json
import math


def best_row(task, row, folder):
    task.best = min(getattr(task, "best", math.inf), row["validation_loss"])


def dump_row(task, row, folder):
    if row["step"] > task.report_from:
        task.summary = json.dumps({"step": row["step"], "weights": task.head.weight.norm(), "metrics": row})
