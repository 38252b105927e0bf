"""The audit's page and the comparison's, in a real browser: usable with 10 000 rows, without script, in light and dark."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import random
import re
from pathlib import Path
from typing import Any

import cases
import pytest

from reports import audit_page, compare_page

CAUSES = ["lr_too_high", "bad_data_batch", "fp16_overflow"]


def document(n: int, hostile: bool = False) -> dict[str, Any]:
    rng, rows, curves = random.Random(3), [], []
    for i in range(n):
        bad = i % 4 == 0
        id = cases.HOSTILE + str(i) if hostile else f"project-{i % 17}__sweep_{i // 100:03d}__run-{i:05d}-lr{rng.random():.4f}"
        row = dict.fromkeys(["second_cause", "started", "error", "page", "first_bad_step", "probability", "top_cause"])
        row |= {"id": id, "path": id, "framework": "lightning", "status": "finished", "verdict": "unhealthy" if bad else "healthy",
                "spikes_fast": int(bad), "spikes_slow": 0, "spikes_non_recovering": 0, "attempts": 1, "steps": 5000 + i, "scalars": 5000,
                "lost": 0, "seconds": 1e3, "answer": id, "grave": int(bad), "known": 0, "loss": rng.random() * 3, "loss_metric": "loss.train",
                "host": f"node-{i % 40:03d}", "first_step": 0}  # fmt: skip
        if bad:
            row |= {
                "top_cause": CAUSES[i // 4 % 3],
                "probability": rng.random(),
                "first_bad_step": rng.randrange(5000),
                "page": f"runs/{i}.html",
            }
        rows.append(row)
        curves.append(bytes(min(99, int(99 * 0.9**k + rng.random() * 5)) for k in range(32)))
    name = rows[0]["id"]
    differs = [{"key": "lr", "a": "1", "b": name}]
    shared = {"first": 9, "steps": {name: 919}, "offset_groups": [{"offset": 0, "runs": [name]}, {"offset": 5, "runs": []}], "runs": 28,
              "exposed": 30, "spared": [], "p": 1e-30, "samples_recorded": False, "family": "", "says": f"28 of 30 runs spike. {name}"}  # fmt: skip
    cause = {
        "cause": "hang",
        "key": "host",
        "value": name,
        "runs": 9,
        "of": 10,
        "expected": 1.2,
        "p": 1e-9,
        "ids": [name],
        "same_runs": [name],
    }
    seeds = {
        "runs": [name],
        "seeds": ["1"],
        "metric": "loss.train",
        "mean": 2.0,
        "sd": 0.1,
        "low": 1.9,
        "high": 2.1,
        "wide": True,
        "off": [{"id": name, "p": 0.0}],
    }
    two = {"a": 0, "b": 0, "differs": differs, "metric": "loss.train", "pairs": 3, "runs": [3, 3], "left_out": 0, "effect": 0.1,
           "interval": [-0.1, 0.3], "p": 0.4, "verdict": "not separable from seed noise"}  # fmt: skip
    change = {"id": name, "path": name, "verdict": "unhealthy", "top_cause": "hang", "was": None, "why": name}
    return {
        "schema": 1, "tool": {"name": "forensics", "version": "0"}, "roots": [name], "runs": n, "known": 1,
        "verdicts": {"unhealthy": n // 4, "inconclusive": 0, "healthy": n - n // 4}, "failed": [{"id": name, "path": name, "error": name}],
        "causes": [{"cause": c, "runs": 5} for c in CAUSES], "shared_batches": [shared], "shared_causes": [cause], "seed_groups": [seeds],
        "comparisons": [two], "duplicates": [{"kind": "fork", "runs": [name], "until": 9, "parts_by": 12, "differs": differs}],
        "outcomes": [{"name": "lr", "known": 9, "rows": [{"value": name, "runs": 9, "unhealthy": 1, "spiked": 1, "loss": 2.0, "losses": 9}]}],
        "since": {"new": [change], "gone": [], "worse": [], "better": [], "other_cause": []}, "rows": rows, "curves": curves,
    }  # fmt: skip


def comparison(text: str) -> dict[str, Any]:
    run = {"id": text, "path": text, "framework": None, "status": "finished", "steps": [0, 99], "attempts": 1, "scalars": 100}
    points = [[i, 2.0 * 0.99**i] for i in range(100)]
    parted = {"common": 100, "log": True, "equal": 5, "last_equal": 4, "first_unequal": 5, "excursion": 30, "excursion_height": 1.0,
              "excursion_by": "B", "excursion_way": "jumps", "level": 40, "sigma": 0.01, "last_difference": 0.3}  # fmt: skip
    entry = {"axis": "steps", "at": 99.0, "a": 1.0, "b": 1.1, "sigma": 0.01, "better": "A", "cannot_tell": "", "reach": [50.0, None]}
    return {
        "schema": 1, "kind": "comparison", "tool": {"name": "forensics", "version": "0", "command": [text]}, "runs": [run, run], "metric": "loss.train",
        "divergence": {"loss.train": parted}, "spikes": [{"run": "B", "step": 50, "peak": 51, "class": "fast"}], "environment": [], "recipe": [{"name": "rate", "a": 1e-3, "b": None, "differs": True}],
        "config": [{"key": text, "a": text, "b": None, "kind": "other", "suspicion": 45.0, "why": text}], "warnings": [text],
        "data_order": {"order": "unknown", "from": None, "shift": None, "how": "", "why": text}, "throughput": [],
        "learning": [entry, entry | {"axis": "flops", "at": None, "cannot_tell": text}], "answer": text,
        "curves": [{"metric": "loss.train", "unit": "nats", "scale": "log", "a": points, "b": [[s, v * 1.1] for s, v in points]}],
    }  # fmt: skip


def titled() -> dict[str, Any]:
    """With titles of the causes, and a run whose name a spreadsheet would take for a formula."""
    made = document(400)
    made["causes"] = [{"cause": c, "title": c.replace("_", " ").capitalize(), "runs": 5} for c in CAUSES]
    made["rows"][0]["id"] = '=HYPERLINK("x"), "y"'
    return made


PAGES = {
    "titled": audit_page.render(titled()),
    "small": audit_page.render(document(40)),
    "hostile": audit_page.render(document(8, hostile=True)),
    "many": audit_page.render(document(10_000)),
    "compare": compare_page.render(comparison("a run")),
    "compare-hostile": compare_page.render(comparison(cases.HOSTILE)),
}


def test_ten_thousand_rows_fit_into_five_megabytes() -> None:
    assert len(PAGES["many"].encode()) < 5_000_000
    assert PAGES["many"].count("<svg>") == 10_000


def test_where_room_runs_out_healthy_runs_lose_their_curves_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_page, "ROOM", 12_000)
    page = audit_page.render(document(40))
    bad = page.count('<tr class="u">')
    assert bad == 10 and len(re.findall(r'<tr class="u"><td>[^\n]*?<svg>', page)) == bad
    assert len(re.findall(r'<tr class="h"><td>[^\n]*?<svg>', page)) < 30


@pytest.mark.parametrize("name", PAGES)
def test_only_our_own_style_and_script(name: str) -> None:
    page = PAGES[name]
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy and policy[1].startswith("default-src 'none'; base-uri 'none'; form-action 'none';") and "unsafe" not in policy[1]
    code = re.findall(r"<style>(.*?)</style>", page, re.S) + re.findall(r"<script>(.*?)</script>", page, re.S)
    hashes = {base64.b64encode(hashlib.sha256(c.encode()).digest()).decode() for c in code}
    assert hashes == set(re.findall(r"'sha256-([^']+)'", policy[1]))
    assert not re.search(r"<(img|link|iframe|object|embed|base|form)\b", page)


def test_markdown_escapes_and_counts() -> None:
    text = audit_page.markdown(document(40))
    assert text.startswith("# 10 of 40 runs went wrong")
    hostile = audit_page.markdown(document(8, hostile=True))
    assert "<script" not in re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", hostile)
    assert "10 of 40" in audit_page.terminal(document(40))
    assert "\x1b" not in audit_page.terminal(document(8, hostile=True)) + compare_page.terminal(comparison(cases.HOSTILE))


@pytest.fixture
def show(open_page: Any) -> Any:
    return lambda name, **options: open_page(PAGES[name], **options)


@pytest.mark.parametrize("name", ["small", "compare", "hostile"])
def test_axe_finds_nothing(show: Any, axe: Any, name: str) -> None:
    page = show(name, bypass_csp=True)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert axe(page, practices=name == "compare") == []


def test_many_rows_are_sorted_and_filtered(show: Any) -> None:
    page = show("many")
    assert page.locator("#live tbody tr").count() == 100
    assert page.locator("#count").inner_text() == "10000 of 10000 runs"
    page.locator("#find").fill("NODE-007")
    page.locator("#count", has_text="250 of").wait_for()
    page.locator("#find").fill("")
    page.locator("#verdict").select_option("unhealthy")
    page.locator("#cause").select_option("fp16_overflow")
    page.locator("#count", has_text="833 of").wait_for()
    page.locator("#live th button", has_text="first bad step").click()
    steps = [int(x) for x in page.locator("#live tbody tr td:nth-child(7)").all_inner_texts()]
    assert steps == sorted(steps) and len(steps) == 100
    page.locator("#live th button", has_text="first bad step").click()
    assert page.locator("#live th[aria-sort=descending]").count() == 1
    page.locator("#next").click()
    assert page.locator("#place").inner_text() == "101 to 200 of 833"


def test_a_tally_is_a_filter_and_what_is_shown_can_be_saved(show: Any) -> None:
    page = show("titled")
    page.locator(".tally button", has_text="Fp16 overflow").click()
    page.locator("#count", has_text="33 of").wait_for()
    assert page.locator("#cause").input_value() == "Fp16 overflow"
    page.locator(".tally button", has_text="Fp16 overflow").click()
    page.locator("#count", has_text="400 of").wait_for()
    page.locator(".counts button", has_text="unhealthy").click()
    page.locator("#count", has_text="100 of").wait_for()
    with page.expect_download() as saved:
        page.locator("#csv").click()
    rows = list(csv.DictReader(io.StringIO(Path(saved.value.path()).read_text("utf-8"))))
    assert len(rows) == 100
    assert {r["verdict"] for r in rows} == {"unhealthy"}
    assert sum(r["run"] == "'" + '=HYPERLINK("x"), "y"' for r in rows) == 1
    assert {r["cause"] for r in rows} == {"Lr too high", "Bad data batch", "Fp16 overflow"}


def test_what_is_shown_stands_in_the_address(show: Any) -> None:
    page = show("titled", anchor="#verdict=unhealthy&cause=Fp16+overflow&sort=6&down=1")
    assert page.locator("#count").inner_text() == "33 of 400 runs"
    assert page.locator("#live th[aria-sort=descending]").inner_text().startswith("first bad step")
    page.locator("#cause").select_option("")
    page.locator("#count", has_text="100 of").wait_for()
    assert page.evaluate("location.hash") == "#verdict=unhealthy&sort=6&down=1"
    page.locator("#verdict").select_option("")
    page.locator("#live th button", has_text="first bad step").click()
    assert page.evaluate("location.hash") == "#runs"


def test_the_numbers_a_manager_asks_for() -> None:
    made = document(8)
    made["rows"][0] |= {"status": "crashed", "ending": "out_of_memory", "gpu_hours_lost": 12.5, "owner": "ada", "path": "team/x/one"}
    made["rows"][1] |= {"status": "hung", "ending": "hang", "gpu_hours_lost": 0.25, "path": "team/y/two"}
    for row in made["rows"][2:]:
        row["path"] = f"team/x/{row['id']}"
    made["causes"] = [{"cause": "a", "title": "Bad data batch", "runs": 3}, {"cause": "b", "title": "Hang", "runs": 1}]
    told = {what: (number, behind) for number, what, behind in audit_page.headline_numbers(made)}
    assert told["died"] == ("2", "1 out of memory and 1 hung")
    assert told["GPU-hours lost"] == ("12.75", "repeated work and silence, known for 2 runs")
    assert told["causes seen more than once"] == ("1", "Bad data batch (3)")
    page = audit_page.render(made)
    assert re.search(r'<th scope="col">owner</th><th scope="col">folder</th>', page)
    assert "<td>node-000<td>ada<td>x" in page and "<td>y" in page
    assert page.index('id="runs"') < page.index('id="shared"')


def test_what_is_open_has_no_percentage() -> None:
    made = document(4)
    made["causes"] = [{"cause": "unknown", "title": "Cause open", "runs": 1}]
    made["rows"][0] |= {"top_cause": "unknown", "probability": 0.99}
    made["endings"] = {"crashed": 2, "hung": 1}
    text = audit_page.render(made)
    assert "<td>unhealthy<td>Cause open<td><td>" in text
    assert audit_page.headline(made).startswith("1 of 4 runs went wrong, 2 crashed, 1 hung")


def test_without_script_all_rows_are_there(show: Any) -> None:
    page = show("many", java_script_enabled=False)
    assert page.locator("details.page").count() == 40
    assert page.locator("details.page tbody tr").count() == 10_000
    page.locator("details.page > summary").nth(1).click()
    assert page.locator("details.page").nth(1).locator("tbody tr").first.is_visible()
    assert page.locator("input:visible, button:visible").count() == 0


@pytest.mark.parametrize("name", ["hostile", "compare-hostile"])
@pytest.mark.parametrize("script", [True, False])
def test_hostile_text_stays_text(show: Any, name: str, script: bool) -> None:
    page = show(name, java_script_enabled=script)
    assert page.locator("img, b:text-is('bold')").count() == 0
    assert "onerror=alert(1)" in page.locator("main").inner_text()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2028]", page.locator("body").inner_text())


@pytest.mark.parametrize("name", ["small", "compare"])
def test_no_page_scrolls_sideways(show: Any, cut_off: Any, name: str) -> None:
    assert cut_off(show(name)) == []
    page = show(name)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    for width in (1280, 760, 375):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
