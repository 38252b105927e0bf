"""What docs/invariance.md says around the tables."""

from __future__ import annotations

from relogging.changes import TRANSFORMATIONS

SAYS = {
    "again": "the same format, nothing changed: what the writing itself costs",
    "as_csv": "a CSV, a row for each that was logged",
    "as_jsonl": "JSON lines",
    "as_console": "console lines: `[clock] step: 10 \\| loss: 2.3 \\| lr: 0.001`",
    "as_tensorboard": "an event file, values in single precision",
    "as_trainer_state": "Hugging Face's `trainer_state.json`, with its tags and without clocks",
    "renamed": "Lightning's tags, or slashed ones where it has these",
    "every_second": "every second logged step of each metric; evaluations stay",
    "smoothed": "the training loss as the running mean of five logged values",
    "rounded": "four significant digits of losses, three of the rest",
    "no_clock": "no wall clock",
    "no_grad_norm": "no gradient norm",
    "no_lr": "no learning rate",
    "no_eval": "no evaluation",
    "two_files": "training and evaluation in two files",
    "key_order": "keys of each row in any order",
    "offset": "steps counted from 1 instead of 0, or from 0 instead of 1",
    "no_config": "no settings",
    "cut_after": "the log ends a tenth of the run after the last step that the truth names",
}


def page(tables: str, runs: int) -> str:
    """docs/invariance.md."""
    listed = "\n".join(f"| `{t}` | {SAYS[t]} |" for t in TRANSFORMATIONS)
    return f"""# The same run, logged otherwise

Written by `python benchmarks/relog.py --write` over {runs} runs.

The training is the same whatever wrote it down, so verdict and first cause should be the same. A program writes each run again, one
change at a time, and both are analyzed. Settings, checkpoints, manifests and the lines of console logs that are no rows of metrics stay
as they are; the original metric files are left out.

| transformation | what the copy is |
|---|---|
{listed}

What another tracker held beside the curves (its settings, sample ids) goes into `logged_config.json` and `batches.jsonl`; histograms,
pictures and the status that a tracker noted are lost. Runs that W&B or MLflow wrote become JSONL, for nothing else writes their files.
Where a format has no clock (the Trainer's state) or must have one (event files: a second a row where none was logged), the copy is as
that format has it. A transformation that would contradict what stays, or change nothing, is not done for that run and counted below.

*Verdict the same* is over all copies, *first cause the same* over those of runs that were called unhealthy; causes within one
percentage point of the first are first among equals. *Surer than before*: of copies that lack something, those whose first cause gained more than two
percentage points; none should. *Misread*: copies in which one of the usual metrics is not read at all the steps that were
written. Not every broken row is a fault: what shows only in the evaluation, the rate or the clock is not seen without it. In
brackets are 95 % Wilson intervals; copies of one run are not independent.

{tables}"""
