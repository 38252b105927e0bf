"""Recorded incidents: each names causes and signs that there are, or why no log could have told it; causes quote the best documented."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from runs import case, write
from test_docs import docs_make

import forensics
from forensics import cli
from forensics.causes.files import causes
from forensics.published.incidents import HELPED, MOST, Incident, incidents, of_cause
from forensics.redact import redacted
from forensics.rules import detectors, id_of
from forensics.signs.sign import looks
from reports import html, markdown

ASTRAY = 15  # of 78: the symptom is seen, and their cause is not weighed by it
SILENT = 13  # incidents that no log could have told: a new one needs a reason, and one fewer is a sign gained


def test_all_of_them_are_there() -> None:
    assert len(incidents()) == 130
    assert sum(not i.speaks for i in incidents()) <= SILENT


@pytest.mark.parametrize("incident", incidents(), ids=lambda i: f"{i.run} {i.at}")
def test_a_sign_speaks_or_the_row_says_why_none_can(incident: Incident) -> None:
    assert set(incident.causes) <= causes().keys()
    assert set(incident.speaks) <= looks().keys() | {id_of(d) for d in detectors()}
    assert bool(incident.speaks) != bool(incident.silent)
    assert incident.what and incident.did and incident.outcome and incident.helped in HELPED
    assert incident.source.startswith("https://") and " " not in incident.source
    assert incident.shown in ("quoted", "read")


def test_most_of_what_speaks_leads_to_the_cause_of_its_account() -> None:
    """The others show a symptom that our cause does not explain or is not weighed by; docs/incidents.md marks them."""
    astray = [i for i in incidents() if i.causes and i.speaks and not docs_make.table_pages.led_to(i)]
    assert len(astray) <= ASTRAY, [f"{i.run} {i.at}: {i.causes} by {i.speaks}" for i in astray]


def test_at_most_three_best_documented_first_and_of_different_trainings() -> None:
    for cause in causes():
        told = of_cause(cause)
        assert len(told) <= MOST
        assert [i.documented for i in told] == sorted((i.documented for i in told), reverse=True)
    assert len({i.run.split()[0] for i in of_cause("lr_too_high")}) == MOST
    assert of_cause("unknown") == () and of_cause("posterior_collapse") == ()


def test_a_cause_on_the_page_says_where_it_was_seen_before(tmp_path: Path) -> None:
    def rate(i: int) -> float:
        return 3e-4 * (min(1.0, i / 50) if i <= 200 else min(1.0, (i - 200) / 50))

    lines = [f"step {i} | loss {2.0 + 2 / i:.4f} | lr {rate(i):.3e}" for i in range(1, 401)]
    document = case(write(tmp_path / "run", 10, log="\n".join(lines)))
    known = {h["id"]: h for h in document["hypotheses"]}
    assert known["unknown"]["seen_before"] == []
    for h in document["hypotheses"]:
        assert [b["source"] for b in h["seen_before"]] == [i.source for i in of_cause(h["id"])]


def test_page_and_markdown_quote_it_and_a_case_without_it_is_a_page(tmp_path: Path) -> None:
    sample = Path(__file__).resolve().parent.parent.parent / "samples" / "schedule_reset_csv"
    document = forensics.analyze(str(sample)).to_json()
    top = document["hypotheses"][0]
    assert top["seen_before"]
    for page in (html.render(document), markdown.render(document)):
        assert "Seen before" in page and "IDEFICS-80B 2023" in page
    for h in document["hypotheses"]:
        del h["seen_before"]
    assert "Seen before" not in html.render(document)


def test_a_redacted_case_quotes_the_public_source_and_nothing_that_was_put_in_its_place() -> None:
    document = {
        "run": {"path": "/home/zelda/run"},
        "hypotheses": [{"id": "lr_schedule_reset", "seen_before": [{"says": "by zelda"}]}, {"id": "hang"}, 3],
    }
    clean = redacted(document)
    assert clean["hypotheses"][0]["seen_before"] == [i.to_json() for i in of_cause("lr_schedule_reset")]
    assert clean["hypotheses"][1:] == [{"id": "hang"}, 3] and "zelda" not in str(clean)
    assert redacted({"hypotheses": "none"})["hypotheses"] == "none"


def test_explain_tells_it_with_its_source() -> None:
    told = CliRunner().invoke(cli.main, ["explain", "rank_divergence"]).output
    assert "Seen before\n" in told and "BLOOM-176B 2022" in told and "https://github.com/bigscience-workshop" in told
    assert "Seen before" not in CliRunner().invoke(cli.main, ["explain", "posterior_collapse"]).output


def test_the_tables_are_read_when_asked_for() -> None:
    look = "import forensics.pipeline; from forensics.published import incidents, recipes; "
    look += "print(incidents.incidents.cache_info().currsize, recipes.published.cache_info().currsize)"
    assert subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout.split() == ["0", "0"]
