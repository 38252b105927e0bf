"""`forensics batch`: which samples a step saw."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from forensics.verbs.options import attach, batches_option, collected, may_show, run_config_option, run_option, steady

LONGEST = 20_000  # characters of a list of samples on the terminal


@dataclass(frozen=True)
class Content:
    """Whether samples are printed, and from which data."""

    data: Path | None
    show: bool


@click.command()
@click.argument("run")
@click.option("--step", type=int, required=True, help="An optimizer step, as the log labels it.")
@batches_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--data", type=click.Path(path_type=Path), help="The training data, for --show-data.")
@click.option("--show-data", "show", is_flag=True, help="Print samples of the batch.")
@run_option
@run_config_option
@collected(content=Content)
def batch(run: str, step: int, manifest: Path | None, as_json: bool, name: str | None, run_config: bool, content: Content) -> None:
    """Print which samples were in the batch of one step of RUN, and how that is known.

    "recorded": a file lists them (a manifest, or ids in the log). "rebuilt": worked out from the loader, its seed and the size of
    the data, if the log agrees; the output lists the assumptions. "unknown": the output says what is missing.
    """
    may_show(show=content.show, data=content.data, redact=False)
    if as_json and content.show:
        raise click.UsageError("--json prints ids, never content: give one of --json and --show-data")
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
    if content.show and content.data is not None:
        _print_samples(chosen, content.data, step, found["samples"])


def _print_samples(run: Any, data: Path, step: int, samples: list[Any]) -> None:
    from forensics.read_data import reading
    from reports import data_section

    click.echo("\nWhat follows is training data: check before you pass it on.")
    shown = reading.of_step(run, data, step, samples)
    click.echo("\n".join(map(steady, data_section.text(shown).split("\n"))))


def _listed(samples: list[Any]) -> str:
    """'320 to 329' where numbers follow each other, else all of them, as far as they fit."""
    if len(samples) > 3 and all(isinstance(x, int) for x in samples) and samples == list(range(samples[0], samples[-1] + 1)):
        return f"{samples[0]} to {samples[-1]}"
    text = ", ".join(map(str, samples))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(samples)} samples; --json has them all)"
