"""`forensics doctor`: is everything there?"""

from __future__ import annotations

import json
from typing import Any

import click

from forensics.verbs.options import steady


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Print versions, what is installed, which formats and commands need which extra, and the GPUs that torch can use.

    Exits with 1 if something that every command needs is missing or too old.
    """
    from forensics import installation

    found = installation.report()
    if as_json:
        click.echo(json.dumps(found, indent=1))
    else:
        for line in _lines(found):
            click.echo(steady(line))
    if found["problems"]:
        ctx.exit(1)


def _lines(found: dict[str, Any]) -> list[str]:
    torch = found["accelerator"]
    devices = ", ".join(torch["devices"]) or torch["says"]
    limit = f", memory limited to {found['memory_limit'] >> 20} MB" if found["memory_limit"] else ""
    return [
        f"forensics {found['forensics']}, Python {found['python']} ({found['executable']})",
        f"{found['platform']}, {found['cores']} cores{limit}",
        f"torch {torch['torch']}: {devices}" if torch["torch"] else torch["says"],
        "",
        "every install:  " + ", ".join(f"{p['name']} {p['version'] or 'MISSING'}" for p in found["packages"]),
        *(_extra(name, extra) for name, extra in found["extras"].items()),
        "",
        *([f"problem: {p}" for p in found["problems"]] or ["no problem found"]),
    ]


def _extra(name: str, extra: dict[str, Any]) -> str:
    missing = [f"{p['name']} {p['version']} (needs {p['needs']})" if p["version"] else p["name"] for p in extra["packages"] if not p["ok"]]
    state = "installed" if not missing else f"missing: {', '.join(missing)}; pip install 'run-forensics[{name}]'"
    return f"{name + ':':<15} {extra['for']}: {state}"
