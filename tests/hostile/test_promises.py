"""Every case of the corpus holds the promises of docs/promises.md.

A ninth of them by default; `HOSTILE=all make test` runs every one, those that take long, too. One process imports everything
and forks for each case.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hostile import corpus

ROOT = Path(__file__).resolve().parents[2]
CASES = {c.name: c for c in corpus.cases()}
# pickles and archives are held to the same in tests/parsers/test_checkpoints_safety.py, without the whole command
THINNED = ("pickles/", "archives/", "verbs/checkpoint_0")
LONG = {
    "markup/long", "console/steps_back_and_forth",
    "csv/line_of_commas", "console/many_errors", "jsonl/line_of_braces", "jsonl/line_of_openings", "csv/headers_without_end",
    "events/200k_tags", "events/20k_values_in_one", "jsonl/line_of_30_megabytes", "events/large_within", "events/sparse_8_gigabytes", "wandb/kinds_everywhere", "wandb/300k_config_keys",
    "wandb/20k_keys", "wandb/dict_bomb", "jsonl/200k_tags", "jsonl/20k_shapes", "jsonl/line_of_a_million_objects", "json/300k_settings",
    "json/list_of_5_million", "csv/50k_columns", "parquet/3_million_rows", "console/text_noise",
    "verbs/batches_ranges", "verbs/audit_markup", "verbs/audit_oddities", "verbs/audit_secrets", "verbs/audit_resumes_torn", "verbs/audit_fifos",
    "folder/20_000_files", "folder/2000_logs", "folder/sparse_files", "sqlite/endless_view", "settings/yaml_300k_keys",
}  # fmt: skip


def _chosen() -> list[str]:
    if os.environ.get("HOSTILE") == "all":
        return list(CASES)
    thinned = [n for n in CASES if n.startswith(THINNED)]
    return [n for n in CASES if n not in LONG and not n.startswith(THINNED)][::9] + thinned[::30]


@pytest.fixture(scope="session")
def verdicts(request: pytest.FixtureRequest) -> dict[str, list[str]]:
    """What the runner says of each case that is about to be tested."""
    mine = [i for i in request.session.items if i.path == Path(__file__) and getattr(i, "callspec", None)]
    wanted = [i.callspec.params["name"] for i in mine]
    command = [sys.executable, "-m", "hostile.runner", "--jobs", str(min(os.cpu_count() or 1, 4)), "--exactly"]
    path = os.pathsep.join([str(ROOT / "tests"), str(ROOT)])
    done = subprocess.run(command, input="\n".join(wanted), capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(found) == len(wanted), done.stderr[-2000:]
    return {r["name"]: r["broken"] for r in found}


@pytest.mark.parametrize("name", _chosen())
def test_case(verdicts: dict[str, list[str]], name: str) -> None:
    assert verdicts[name] == []


def test_there_are_cases_of_every_format() -> None:
    assert len(CASES) > 1000
    assert set(CASES) > LONG
    kinds = {n.split("/")[0] for n in CASES}
    assert kinds >= {"events", "wandb", "jsonl", "json", "state", "csv", "parquet", "arrow", "sqlite", "console", "settings",
                     "pickles", "archives", "secrets", "markup", "folder", "names", "verbs"}  # fmt: skip


def test_the_checks_notice_what_they_are_for(tmp_path: Path) -> None:
    """A command that broke each promise: the checks name it."""
    from hostile import checks
    from hostile.case import Case

    for folder in ("in", "out", "cwd", "tmp", "home"):
        (tmp_path / folder).mkdir()
    (tmp_path / "codes").write_text("[0, 0]")
    (tmp_path / "stdout").write_text("a \x1b[2J b")
    (tmp_path / "stderr").write_text("Traceback (most recent call last):")
    (tmp_path / "in" / "EXECUTED").touch()
    (tmp_path / "cwd" / "stray").touch()
    document = {"checks": [{"id": "x", "status": "error", "note": "boom"}], "gaps": [{"path": "", "at": "byte", "what": "w", "lost": 2}]}
    (tmp_path / "out" / "r.case.json").write_text(json.dumps(document) + " hush")
    (tmp_path / "out" / "r.md").write_text("<img src=x> hush")
    (tmp_path / "out" / "r.html").write_text("<!doctype html><img src=x onerror=alert(1)><script>evil()</script></html>")
    (tmp_path / "out" / "r.case.json").write_text(json.dumps(document))
    case = Case("x", lambda _: None, {"loss": [(1, 1.0)]}, gaps=(("f", "byte 3"),), lost=5, absent=("hush",), present=("SEEN",))
    checks.look(case, tmp_path)
    said = "\n".join(json.loads((tmp_path / "broken.json").read_text()))
    for expected in ("stdout holds", "Traceback", "files outside", "detector x broke", "gap without file", "no gap at f", "2 records counted", "<img", "onerror",
                     "not ours", "policy", "Markdown holds markup", "holds 'hush'", "'SEEN' is nowhere", "'loss': 0 points"):  # fmt: skip
        assert expected in said, (expected, said)
