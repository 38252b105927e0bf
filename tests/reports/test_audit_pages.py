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

from forensics.audits import totals
from forensics.audits.row_columns import COLUMNS, LOSSES
from reports import audit_page, audit_rows, audit_totals, compare_page

CAUSES = ["lr_too_high", "bad_data_batch", "fp16_overflow"]


def document(n: int, hostile: bool = False) -> dict[str, Any]:
    rng, rows, curves = random.Random(3), [], []
    for i in range(n):
        bad = i % 4 == 0
        id = cases.HOSTILE + str(i) if hostile else f"project-{i % 17}__sweep_{i // 100:03d}__run-{i:05d}-lr{rng.random():.4f}"
        row = dict.fromkeys(COLUMNS)
        row |= {"id": id, "path": id, "framework": "lightning", "status": "finished", "verdict": "unhealthy" if bad else "healthy",
                "spikes_fast": int(bad), "spikes_slow": 0, "spikes_non_recovering": 0, "attempts": 1, "steps": 5000 + i, "scalars": 5000,
                "lost": 0, "seconds": 1e3, "answer": id, "grave": int(bad), "known": 0, "loss": rng.random() * 3, "loss_metric": "loss.train",
                "host": f"node-{i % 40:03d}", "first_step": 0, "why_null": "gpu_hours: the log has no clock"}  # fmt: skip
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
        "schema": 1, "tool": {"name": "forensics", "version": "0"}, "roots": [name], "runs": n, "known": 1, "costs": totals.of(rows), "history": None,
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


def costly() -> dict[str, Any]:
    """Eight runs, of which four have known costs and one is new since last night."""
    made = document(8)
    told: dict[int, dict[str, Any]] = {
        0: {"status": "crashed", "ending": "out_of_memory", "lost_repeated": 12.0, "lost_hang": 0.75, "owner": "ada", "host": "n1, n2",
            "rerun": "yes, from checkpoint-400: halve the micro-batch"},
        1: {"status": "hung", "ending": "hang", "lost_hang": 1.5, "host": None},
        2: {"status": "crashed", "ending": "out_of_memory", "lost_repeated": 2.5, "owner": "bob", "host": "n1"},
        4: {"lost_diverged": 0.5, "owner": "a, b", "host": "n3", "shard": "web-31"},
        5: {"host": "n3"},
    }  # fmt: skip
    for i, row in enumerate(made["rows"]):
        row |= {"id": f"r{i}", "path": f"team/{'y' if i == 1 else 'x'}/r{i}", "page": None} | told.get(i, {})
        lost = sum(row[c] or 0.0 for c in LOSSES)
        row |= (
            {"gpus": 2, "gpu_hours": 10.0, "lost_gpu_hours": lost}
            if lost
            else {"why_null": "gpu_hours, lost_gpu_hours: the log has no clock; rerun: its cause is open"}
        )
        row |= {"top_cause": "a"} if row["verdict"] == "unhealthy" else {}
    made["causes"] = [{"cause": "a", "title": "Bad data batch", "runs": 3}, {"cause": "b", "title": "Hang", "runs": 1}]
    week = {"runs": 4, "died": 1, "costed": 4, "gpu_hours": 40.0, "lost_gpu_hours": 15.75}
    quiet = {"runs": 0, "died": 0, "costed": 0, "gpu_hours": 0.0, "lost_gpu_hours": 0.0}
    weeks = [week | {"week": "2026-W01", "from": "2025-12-29", "costed": 0}, quiet | {"week": "2026-W02", "from": "2026-01-05"}]
    weeks.append(week | {"week": "2026-W03", "from": "2026-01-12"})
    new = {k: made["rows"][0][k] for k in ("id", "path", "top_cause", "ending", "answer", "owner", "host", "lost_gpu_hours", "rerun")}
    made["history"] = {
        "nights": 1,
        "last": "2026-01-05T06:15:00Z",
        "new": [new | {"findings": ["loss_spike-9"], "was": None}],
        "weeks": weeks,
        "undated": 1,
        "notices": [],
    }
    return made | {"costs": totals.of(made["rows"])}


PAGES = {
    "costly": audit_page.render(costly()),
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
    monkeypatch.setattr(audit_rows, "ROOM", 12_000)
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


@pytest.mark.parametrize("name", ["small", "compare", "hostile", "costly"])
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
    at = page.locator("#live th").all_inner_texts().index("first bad step") + 1
    steps = [int(x) for x in page.locator(f"#live tbody tr td:nth-child({at})").all_inner_texts()]
    assert steps == sorted(steps) and len(steps) == 100
    page.locator("#live th button", has_text="first bad step").click()
    assert page.locator("#live th[aria-sort=descending]").count() == 1
    page.locator("#next").click()
    assert page.locator("#place").inner_text() == "101 to 200 of 833"


def test_a_tally_is_a_filter_and_what_is_shown_can_be_saved(show: Any) -> None:
    page = show("titled")
    page.locator(".tally .filter", has_text="Fp16 overflow").click()
    page.locator("#count", has_text="33 of").wait_for()
    assert page.locator("#cause").input_value() == "Fp16 overflow"
    page.locator(".tally .filter", has_text="Fp16 overflow").click()
    page.locator("#count", has_text="400 of").wait_for()
    page.locator(".total .filter").first.click()
    page.locator("#count", has_text="100 of").wait_for()
    with page.expect_download() as saved:
        page.locator("#csv").click()
    rows = list(csv.DictReader(io.StringIO(Path(saved.value.path()).read_text("utf-8"))))
    assert len(rows) == 100
    assert {r["verdict"] for r in rows} == {"unhealthy"}
    assert sum(r["run"] == "'" + '=HYPERLINK("x"), "y"' for r in rows) == 1
    assert {r["cause"] for r in rows} == {"Lr too high", "Bad data batch", "Fp16 overflow"}


def test_what_is_shown_stands_in_the_address(show: Any) -> None:
    page = show("titled", anchor="#verdict=unhealthy&cause=Fp16+overflow&sort=first+bad+step&down=1")
    assert page.locator("#count").inner_text() == "33 of 400 runs"
    assert page.locator("#live th[aria-sort=descending]").inner_text().startswith("first bad step")
    page.locator("#cause").select_option("")
    page.locator("#count", has_text="100 of").wait_for()
    assert page.evaluate("location.hash") == "#verdict=unhealthy&sort=first+bad+step&down=1"
    page.locator("#verdict").select_option("")
    page.locator("#live th button", has_text="first bad step").click()
    assert page.evaluate("location.hash") == "#runs"


def test_the_numbers_that_are_asked_for_first() -> None:
    told = {tile.what: tile for tile in audit_totals.tiles(costly(), {"a": "Bad data batch", "b": "Hang"})}
    assert [(e.number, e.what) for e in told["Went wrong, by cause"].entries] == [("3", "Bad data batch"), ("1", "Hang")]
    died = told["Died or were stopped, by ending"]
    assert (died.total.number, [(e.number, e.what) for e in died.entries]) == ("3", [("2", "out of memory"), ("1", "hang")])
    hours = told["GPU-hours lost, by kind of loss"]
    assert (hours.total.number, hours.note) == ("17.2", "of 40; known for 4 of 8 runs")
    assert [(e.number, e.what) for e in hours.entries] == [("14.5", "repeated work"), ("2.25", "hang"), ("0.5", "after divergence")]
    for what, entries in (
        ("node", [("15.2", "n1"), ("12.8", "n2"), ("0.5", "n3")]),
        ("owner", [("12.8", "ada"), ("2.5", "bob"), ("0.5", "a, b")]),
    ):
        assert [(e.number, e.what) for e in told[f"GPU-hours lost, by {what}"].entries] == entries
    assert [(e.number, e.what) for e in told["GPU-hours lost, by data shard"].entries] == [("0.5", "web-31")]
    assert told["Ready to run again"].total.number == "1"
    assert (
        audit_totals.headline(costly())
        == "2 of 8 runs went wrong, of which 1 crashed; 1 could not be analyzed; 17.2 GPU-hours lost, known for 4 of 8 runs; 1 bad batch shared by several."
    )
    nothing = document(8)
    hours = next(t for t in audit_totals.tiles(nothing, {}) if t.what.startswith("GPU-hours"))
    assert (hours.total.number, hours.note) == ("not known", "8 runs: the log has no clock")
    assert "GPU-hours" not in audit_totals.headline(nothing)


def test_a_cost_that_is_not_known_is_never_nothing() -> None:
    assert [audit_rows.hours(x) for x in (None, 0.0, 0.0009, 0.01, 3.14159, 123.4)] == ["", "0", "<0.01", "0.01", "3.14", "123"]
    made = costly()
    for row in made["rows"]:
        row |= (
            {"gpu_hours": 10.0, "lost_gpu_hours": 0.0009, **dict.fromkeys(LOSSES), "lost_hang": 0.0009}
            if row["id"] == "r1"
            else {"gpu_hours": None}
        )
    made["costs"] = totals.of(made["rows"])
    assert "; <0.01 GPU-hours lost, known for 1 of 8 runs; " in audit_totals.headline(made)
    assert "| kind of loss | hang | <0.01 |" in audit_page.markdown(made).replace("&lt;", "<")
    made["rows"][1]["lost_gpu_hours"] = made["rows"][1]["lost_hang"] = 0.0
    assert "; no GPU-hours lost, known for 1 of 8 runs; " in audit_totals.headline(made | {"costs": totals.of(made["rows"])})
    assert '<td class="n">not known</td>' in audit_page.render(costly())  # of a week without a known hour


def test_every_number_of_the_headline_shows_its_runs(show: Any) -> None:
    page = show("costly")
    ids = {f"r{i}" for i in range(8)}
    wanted = {
        "2 of 8": {"r0", "r4"}, "3 Bad data batch": {"r0", "r4"}, "3": {"r0", "r1", "r2"}, "2 out of memory": {"r0", "r2"}, "1 hang": {"r1"}, "17.2": {"r0", "r1", "r2", "r4"},
        "14.5 repeated work": {"r0", "r2"}, "2.25 hang": {"r1", "r0"}, "0.5 after divergence": {"r4"}, "15.2 n1": {"r0", "r2"}, "12.8 n2": {"r0"}, "0.5 n3": {"r4", "r5"},
        "12.8 ada": {"r0"}, "2.5 bob": {"r2"}, "0.5 a, b": {"r4"}, "0.5 web-31": {"r4"}, "1": {"r0"},
    }  # fmt: skip
    for text, runs in wanted.items():
        button = page.locator(".filter").filter(has_text=re.compile(rf"^\s*{re.escape(text)}\s*$"))
        assert button.count() == 1, text
        button.click()
        shown = set(page.locator("#live tbody tr td:first-child").all_inner_texts())
        assert shown == runs, text
        assert button.get_attribute("aria-pressed") == "true" and page.locator(".filter[aria-pressed=true]").count() == 1
        button.click()
        assert set(page.locator("#live tbody tr td:first-child").all_inner_texts()) == ids
    page.locator(".filter", has_text="0.5 a, b").click()
    assert page.evaluate("location.hash") == "#owner=a%2C+b"
    page.locator("#verdict").select_option("unhealthy")
    assert page.locator("#owner").input_value() == "a, b" and page.locator("#picked button").count() == 0
    page.locator("#owner").select_option("")
    assert page.evaluate("location.hash") == "#verdict=unhealthy"
    page.locator(".filter", has_text="14.5").click()  # a column without a select has a button that takes it away
    page.locator("#picked button").click()
    assert page.evaluate("location.hash") == "#runs" and page.locator("#picked button").count() == 0


def test_the_table_comes_right_after_the_numbers_and_nodes_before_settings() -> None:
    page = audit_page.render(costly())
    places = [page.index(f'id="{name}"') for name in ("h-answer", "runs", "new", "since", "shared", "weeks", "outcomes")]
    assert places == sorted(places)
    assert re.search(r'<th scope="col" class="name">owner</th>', page) and "Died or stopped" in page
    made = costly()
    made["rows"][5] |= {"verdict": "unhealthy"}
    assert "<td>not known: its cause is open" in audit_page.render(made) and "not known: its cause" not in page
    empty = audit_page.render(document(4))
    assert 'id="new"' not in empty and 'id="weeks"' not in empty and ">owner</th>" not in empty


def test_a_row_says_what_happened_when_and_whose(show: Any) -> None:
    made = costly()
    made["rows"][0] |= {"error_line": "RuntimeError: no space left on device", "started": "2026-01-03T10:00:00Z"}
    made["rows"][4] |= {"answer": "Loss jumps from 0.5 to 2.1 at step 9. The cause is open."}
    told = {r["id"]: audit_rows.happened(r) for r in made["rows"]}
    assert told == dict.fromkeys(told) | {"r0": "RuntimeError: no space left on device", "r4": "Loss jumps from 0.5 to 2.1 at step 9"}
    page = show("costly")
    heads = page.locator("#live th").all_inner_texts()
    assert heads[:5] == ["run", "loss", "verdict", "what happened", "cause"] and heads.index("owner") < heads.index(
        "run again"
    ) < heads.index("ending")
    page.locator("#owner").select_option("ada")
    page.locator("#count", has_text="1 of").wait_for()
    assert page.evaluate("location.hash") == "#owner=ada"
    html = audit_page.render(made)
    assert "Began 2026-01-03; known for 1 of 8 runs." in html and "<td>2026-01-03<td>" in html


def test_names_and_heads_stay_in_view(show: Any) -> None:
    page = show("many")
    page.evaluate("document.querySelector('#live .scroll').scrollTo(400, 300)")
    box = "document.querySelector('#live .scroll').getBoundingClientRect()"
    assert page.evaluate(f"document.querySelector('#live tbody tr:nth-child(20) td').getBoundingClientRect().left - {box}.left") < 1
    assert page.evaluate(f"document.querySelector('#live th').getBoundingClientRect().top - {box}.top") < 1


def test_failures_that_repeat_come_first_and_what_was_looked_for_is_told() -> None:
    made = costly()
    failure = {"line": "Exception: Dataset not found in #.", "example": "x", "runs": 3, "ids": ["r0", "r1", "r2"], "endings": ["exception"],
               "hosts": ["n1"], "owners": ["ada"], "folders": ["team/x"]}  # fmt: skip
    looked = {"error_lines": 3, "spiking": 4, "shards": 0}
    page = audit_page.render(made | {"repeated_failures": [failure], "shared_batches": [], "looked": looked})
    assert page.index("Failures that repeat") < page.index("Copies and forks") and "Exception: Dataset not found in #." in page
    assert "looked at the spikes of 4 runs, none beyond chance" in page and "Data shards: no run names any" in page
    assert "| `Exception: Dataset not found in #.` | 3 | n1, ada |" in audit_page.markdown(made | {"repeated_failures": [failure]})
    assert "looked at the last lines of 3 runs that died, none twice" in audit_page.render(made | {"looked": looked})
    assert "team/x/r0\tfrom checkpoint-400: halve the micro-batch" in page.replace("&#9;", "\t")


def test_weeks_are_bars_with_their_numbers() -> None:
    page = audit_page.render(costly())
    assert page.count("<rect ") == 4  # the second week has no run, and of the first no hours are known
    assert "2026-W03, from 2026-01-12: 25 %, 4 runs" in page and "25 % in 2026-W03" in page


def test_what_is_open_has_no_percentage() -> None:
    made = document(4)
    made["causes"] = [{"cause": "unknown", "title": "Cause open", "runs": 1}]
    made["rows"][0] |= {"top_cause": "unknown", "probability": 0.99}
    text = audit_page.render(made)
    assert "<td>Cause open<td>node-" in text and "<td>99 %" not in text
    made["titles"] = {"lr_too_high": "Learning rate too high"}
    made["rows"][0] |= {"candidate": "lr_too_high", "probability": 0.54}
    assert "<td>Cause open: Learning rate too high<td>54 %<td>" in audit_page.render(made)
    made["causes"][0]["nearest"] = [{"cause": "lr_too_high", "title": "Learning rate too high", "runs": 1}]
    assert audit_totals.tiles(made, {"unknown": "Cause open"})[0].note.startswith("the cause of 1 is open; ")
    assert "causes: open 1" in audit_page.terminal(made)
    entries = audit_totals.tiles(made, {"unknown": "Cause open"})[0].entries
    assert [(e.number, e.what, e.values) for e in entries] == [
        ("1", "Cause open", ("Cause open",)),
        ("1", "open, perhaps: Learning rate too high", ("Cause open: Learning rate too high",)),
    ]
    assert audit_totals.headline(made).startswith("1 of 4 runs went wrong;")


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


@pytest.mark.parametrize("name", ["small", "compare", "costly"])
def test_no_page_scrolls_sideways(show: Any, cut_off: Any, name: str) -> None:
    assert cut_off(show(name)) == []
    page = show(name)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    for width in (1280, 760, 375):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
