"""The one sentence at the top: what happened in the words of the finding, short, and the cause only once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from curves import noisy, run_of

import forensics
from forensics import evidence, pipeline, ranking
from forensics.case import Clue, Finding, Hypothesis
from forensics.case_parts import headline, summary
from forensics.case_parts.saved_case import finding_of
from forensics.certainty import OPEN, UNNAMED, of_cause
from forensics.signs.sign import absent, looks

SAMPLES = Path(__file__).parents[2] / "samples"


def found(title: str, kind: str = "loss_spike", step: int = 5, lines: tuple[str, ...] = (), severity: str = "critical") -> Finding:
    shown = (evidence.text("what the log says", lines),) if lines else ()
    return Finding(f"{kind}-{step}", kind, title, step, step, severity, shown)


def cause(title: str, probability: float = 0.97) -> Hypothesis:
    return Hypothesis(title.lower().replace(" ", "_"), title, (), probability=probability)


def test_the_log_line_that_a_title_quotes_is_left_to_the_finding() -> None:
    line = "E   RuntimeError: CUDA out of memory. Tried to allocate 16.00 MiB (GPU 0; 7.76 GiB total capacity)"
    said = headline.explained(
        [found(f"Out of memory after step 2: {line[:60]}", lines=("x", line))], [cause("Out of memory: fragmentation")]
    )
    assert said == "Out of memory after step 2. Cause, almost certainly: fragmentation."
    silent = found("Silence of 12 minutes after step 3, until: NCCL watchdog", lines=("NCCL watchdog timed out",))
    assert headline.headline(silent) == "Silence of 12 minutes after step 3"


def test_a_long_list_is_cut_between_its_parts() -> None:
    title = "Config changed between launches: lr from 1 to 2, " + ", ".join(f"setting_{i} from {i} to {i + 1}" for i in range(9))
    said = headline.headline(found(title))
    assert len(said) <= headline.LONGEST and title.startswith(said + ", ")
    assert headline.headline(found("Loss jumps from 1.5 to 3 at step 7")) == "Loss jumps from 1.5 to 3 at step 7"


def test_a_long_title_is_not_cut_in_brackets() -> None:
    title = f"One and two read exactly zero at the same 2 steps (1852, 5536) and at no other, between neighbours {'of one size ' * 9}"
    said = headline.headline(found(title))
    assert len(said) < len(title) and "(1852, 5536)" in said


def test_a_cause_that_the_first_half_has_named_is_not_named_again() -> None:
    said = headline.explained([found("Config changed between launches: lr from 1 to 2")], [cause("Config changed between launches", 0.9)])
    assert said == "Config changed between launches: lr from 1 to 2. That itself is likely the cause."


@pytest.mark.parametrize(
    ("title", "within"), [("NaN from a sample", "NaN from"), ("GPU fault", "GPU fault"), ("Bad data batch", "bad data")]
)
def test_names_keep_their_capitals(title: str, within: str) -> None:
    assert f"almost certainly: {within}" in headline.explained([found("loss is NaN at step 5")], [cause(title)])
    assert headline.explained([found("loss is NaN at step 5")], [cause(title)]).startswith("Loss is NaN")
    assert headline.headline(found("train/loss is NaN at step 5")) == "train/loss is NaN at step 5"


def test_of_a_nan_and_the_jump_that_it_makes_the_nan_leads() -> None:
    pair = [found("Loss jumps from 1 to nan at step 5"), found("loss is NaN from step 5 on", "nonfinite")]
    assert headline.main(pair) is pair[1]
    earlier = found("Loss jumps from 1 to 2 at step 3", step=3)
    assert headline.main([*pair, earlier]) is earlier


def test_a_saved_finding_gives_the_same_headline() -> None:
    f = found("Out of memory after step 2: CUDA out of memory", lines=("CUDA out of memory",))
    saved = {"id": f.id, "kind": f.kind, "title": f.title, "steps": [5, 5], "severity": "critical",
             "evidence": [{"kind": "text", "title": "", "data": {"lines": ["CUDA out of memory"]}, "where": ""}]}  # fmt: skip
    assert headline.headline(finding_of(saved)) == headline.headline(f) == "Out of memory after step 2"


def test_of_the_gravest_the_one_that_speaks_for_the_leading_cause_leads() -> None:
    changed, back = (
        found("Config changed", "config_change", 0, severity="warning"),
        found("The run stops", "restart", 9, severity="warning"),
    )
    best = Hypothesis("crash", "Crash", (Clue("It stops.", 9.0, (back.id,)),), probability=0.6)
    assert headline.explained([changed, back], [best]).startswith("The run stops.")
    graver = found("Loss is gone", "divergence", 20)
    assert headline.explained([changed, back, graver], [best]).startswith("Loss is gone.")


def test_a_cause_that_only_says_the_symptom_again_is_open() -> None:
    slow = found("The run slows down to 32% of its speed at step 251 and stays slow", "throughput", severity="warning")
    bare = Hypothesis("throughput_collapse", f"Throughput collapse: {UNNAMED}", (), probability=0.97)
    said = headline.explained([slow], [bare])
    assert said == f"{slow.title}. The reason was not logged."
    assert of_cause(bare.title, 0.97, True) == OPEN and of_cause(bare.title, 0.02, False) == "very unlikely"
    named = Hypothesis("throughput_collapse", "Throughput collapse: the device waits for data", (), probability=0.87)
    assert headline.explained([slow], [named]) == f"{slow.title}. Cause, likely: the device waits for data."


def test_nothing_wrong_is_no_rival_where_the_process_is_dead() -> None:
    signs = {name: absent("Not there.") for name in looks()}
    assert ranking.unknown(signs, dead=True).title == "Something not on our list"
    assert len(ranking.unknown(signs, dead=True).clues) == 1
    assert ranking.unknown(signs).title == "Something not on our list, or nothing wrong"


def test_the_jump_leads_where_what_stays_of_it_begins_at_the_same_step() -> None:
    stays, jump = found("From step 5 the loss stays up", "divergence"), found("Loss jumps at step 5")
    assert headline.main([stays, jump]) is jump


def test_a_jump_that_stays_has_one_beginning_and_the_cause_its_own() -> None:
    case = forensics.analyze(str(SAMPLES / "lr_jump_stays_jsonl")).to_json()
    begins = {f["kind"]: f["steps"][0] for f in case["findings"] if f["severity"] == "critical"}
    assert begins == {"loss_spike": 402, "divergence": 402}
    assert case["answer"].startswith("Loss jumps from 1.006 to 8.814 over steps 402 to 403,")
    assert case["hypotheses"][0]["steps"][0] == 401  # where the rate jumped


def test_the_checkpoint_that_lost_the_optimizer_is_none_to_go_back_to() -> None:
    assert forensics.analyze(str(SAMPLES / "optimizer_lost_jsonl")).to_json()["run"]["last_healthy_checkpoint"] is None


def test_a_grave_spike_after_a_hundred_harmless_ones_is_told() -> None:
    loss = noisy(12_000, 0.003) * np.exp(-np.arange(12_000) / 6000)
    loss[np.random.default_rng(1).choice(np.arange(500, 11_500), 100, replace=False)] *= 1.6
    quiet = pipeline.analyze_run(run_of({"loss.train": loss}))
    # two of the hundred are neighbours
    assert quiet.verdict == "healthy" and "99 loss spikes were found, none worth a warning." in quiet.answer
    loss[11_800:] *= 4
    case = pipeline.analyze_run(run_of({"loss.train": loss}))
    assert case.verdict == "unhealthy" and any(f.kind == "loss_spike" and (f.first_step or 0) >= 11_790 for f in case.findings)
    note = next(c.note for c in case.checks if c.id == "loss_spike")
    assert note.endswith(f"the gravest {pipeline.SHOWN_PER_DETECTOR} are listed")


def test_what_only_looks_like_a_spike_is_not_counted_as_one() -> None:
    cycle = 0.5 * (1 + np.cos(np.pi * (np.arange(2000) % 500) / 500))
    loss = (2 * np.exp(-np.arange(2000) / 800) + 0.3) * (1 + 0.25 * cycle) * noisy(2000, 0.01)
    case = pipeline.analyze_run(run_of({"loss.train": loss, "lr": 1e-3 * cycle}, config={"lr_scheduler": "cosine_with_restarts"}))
    assert {f.facts.class_ for f in case.findings if f.kind == "loss_spike"} == {"not_a_spike"}
    assert case.verdict == "healthy" and "spike" not in case.answer


@pytest.mark.parametrize(("set_to", "told"), [(0.004, []), (0.002, ["lr_schedule"])])
def test_a_cycle_may_return_to_the_rate_that_config_names(set_to: float, told: list[str]) -> None:
    """Rows of epochs show the top of a short first cycle nowhere."""
    rate = [0.003, 0.001, 0.0036, 0.003179, 0.002113, 0.0009, 0.0001086, 0.003196, 0.002861, 0.002262, 0.001526, 0.00081, 0.0002665, 1e-5]
    loss = 2 * np.exp(-np.arange(14) / 5) + 0.5
    case = pipeline.analyze_run(
        run_of({"loss.train": loss, "lr": np.array(rate)}, config={"schedule": "restarts", "learning_rate": set_to})
    )
    assert [f.kind for f in case.findings if f.kind == "lr_schedule"] == told


@pytest.mark.parametrize(
    ("planned", "last_line", "verdict"),
    [
        (400, "slurmstepd: error: *** JOB 12 ON gpu-1 CANCELLED AT 2026-05-15T01:01:02 DUE TO TIME LIMIT ***", "inconclusive"),
        (400, "KeyboardInterrupt", "inconclusive"),
        (300, "KeyboardInterrupt", "healthy"),  # all that was planned was done
        (0, "KeyboardInterrupt", "inconclusive"),  # nothing says how long it was to be
        (300, "val set has 120 rows", "healthy"),
    ],
)
def test_a_run_that_was_stopped_short_of_its_plan_is_not_called_healthy(tmp_path: Path, planned: int, last_line: str, verdict: str) -> None:
    loss = noisy(300, 0.05) * np.linspace(1, 0.2, 300)
    of = f"/{planned}" if planned else ""
    (tmp_path / "train.log").write_text("".join(f"step {i + 1}{of} loss {v:.4f}\n" for i, v in enumerate(loss)) + last_line + "\n")
    case = pipeline.analyze_run(forensics.read(str(tmp_path)))
    assert case.verdict == verdict
    left = "100 of its 400 steps were still to come" if planned else "how far it was to go was not logged"
    assert (left in case.answer) == (verdict == "inconclusive")


@pytest.mark.parametrize(
    ("last_line", "first"), [("val set has 120 rows", "unknown"), ("waiting for the dispatch server 10.4.0.12 ...", "hang")]
)
def test_a_log_that_breaks_off_is_not_called_healthy(tmp_path: Path, last_line: str, first: str) -> None:
    """Killed without a word, hung, or copied while it ran: the log does not say."""
    loss = noisy(300, 0.05) * np.linspace(1, 0.2, 300)
    (tmp_path / "train.log").write_text("".join(f"step {i + 1}/400 loss {v:.4f}\n" for i, v in enumerate(loss)))
    (tmp_path / "out.txt").write_text(f"loading\n{last_line}\n")
    case = pipeline.analyze_run(forensics.read(str(tmp_path)))
    assert case.verdict == "inconclusive" and case.hypotheses[0].id == first
    assert case.answer.startswith("The log just stops after step 300 of 400 planned")
    assert "whether it was killed, hangs or still runs was not logged" in case.answer


def test_a_state_saved_in_the_middle_breaks_off_nothing(tmp_path: Path) -> None:
    """Training may have gone on behind the checkpoint."""
    loss = noisy(300, 0.05) * np.linspace(1, 0.2, 300)
    history = [{"step": i + 1, "loss": round(float(v), 4)} for i, v in enumerate(loss)]
    state = {"global_step": 300, "max_steps": 400, "log_history": history}
    (tmp_path / "trainer_state.json").write_text(json.dumps(state))
    case = pipeline.analyze_run(forensics.read(str(tmp_path)))
    assert case.verdict == "healthy" and [h.id for h in case.hypotheses] == ["unknown"]


def test_the_clock_of_a_page_keeps_both_sides_of_a_pause(tmp_path: Path) -> None:
    """So that what stands between two of its points lies on a line."""
    rows = [{"step": i, "loss": 1.0, "timestamp": 1.7e9 + 10 * i + 9000 * (i > 137)} for i in range(400)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (told,) = summary.clock(forensics.read(str(tmp_path)))
    step, seconds = zip(*told["points"], strict=True)
    assert len(step) < 80 and np.interp(range(400), step, seconds) == pytest.approx([row["timestamp"] for row in rows])
