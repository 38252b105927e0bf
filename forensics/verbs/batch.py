"""`forensics batch`: which samples a step saw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from forensics.verbs.options import attach, batches_option, run_config_option, run_option, steady

LONGEST = 20_000  # characters of a list of samples on the terminal


@click.command()
@click.argument("run")
@click.option("--step", type=int, required=True, help="An optimizer step, as the log labels it.")
@batches_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@run_option
@run_config_option
def batch(run: str, step: int, manifest: Path | None, as_json: bool, name: str | None, run_config: bool) -> None:
    """Print which samples were in the batch of one step of RUN, and how that is known.

    "recorded": a file lists them (a manifest, or ids in the log). "rebuilt": worked out from the loader, its seed and the size of
    the data, if the log agrees; the output lists the assumptions. "unknown": the output says what is missing.
    """
    from forensics import at_path
    from forensics.batches import step_to_samples

    chosen = at_path.read(run, run=name, run_config=run_config)
    attach(chosen, manifest)
    found = step_to_samples.answer(chosen, step)
    if as_json:
        from reports.text_format import visible_json

        click.echo(visible_json(json.dumps(found)))
        return
    click.echo(steady(f"step {step}: {_listed(found['samples']) or 'unknown'}"))
    click.echo(steady(f"shard {found['shard']}") if found["shard"] else "shard unknown")
    sure = f", {found['confidence']:.0%} sure" if found["how"] == "rebuilt" else ""
    click.echo(steady(f"{found['how']}{sure}: {found['why']}"))
    for heading, key in (("rests on", "rests_on"), ("assumed", "assumed")):
        for line in found.get(key, ()):
            click.echo(steady(f"  {heading} {line}"))


def _listed(samples: list[Any]) -> str:
    """'320 to 329' where numbers follow each other, else all of them, as far as they fit."""
    if len(samples) > 3 and all(isinstance(x, int) for x in samples) and samples == list(range(samples[0], samples[-1] + 1)):
        return f"{samples[0]} to {samples[-1]}"
    text = ", ".join(map(str, samples))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(samples)} samples; --json has them all)"
