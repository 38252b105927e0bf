"""What the first screen says."""

from __future__ import annotations

from typing import Any

import cases

from reports import checkpoint_table, costs, do_next, first_screen
from reports.schema import complete


def spike(**goodput: Any) -> dict[str, Any]:
    case = cases.spike()
    case["run"]["goodput"] = goodput
    return complete(case)


def test_the_cost_in_time_and_gpu_hours_where_they_are_known() -> None:
    told = "152 steps repeated; 13 steps in a spike that came back"
    assert costs.cost(spike()) == told
    assert costs.cost(spike(seconds_running=7200.0, steps_done=720)) == f"{told}: 28 minutes"
    known = spike(seconds_running=7200.0, steps_done=720, processes=64)
    assert costs.cost(known) == f"{told}: 28 minutes, 29.33 GPU-hours on 64 processes"


def test_a_loss_that_did_not_come_back_is_not_said_to_be_back() -> None:
    assert costs.cost(complete(cases.nan())) == "the loss never recovers in the remaining 101 steps"  # from 300 to 400
    cut = cases.nan()
    cut["spikes"] = [cases.spiked(300, None, "non_recovering", 0.5, 1.0, 1) | {"censored": True, "finding": "loss_spike-300"}]
    cut["timeline"]["bands"][0]["finding"] = "loss_spike-300"
    assert costs.cost(complete(cut)) == ""  # the log ends there: nobody knows


def test_goodput_is_silent_where_nothing_was_lost() -> None:
    assert costs.goodput(spike(interruptions=1, share_steps=1.0)) == ""
    line = costs.goodput(spike(interruptions=2, share_steps=1.0, share_time=0.25))
    assert line == "all of the steps and 25 % of the wall clock useful; 2 interruptions"


def test_a_run_that_lay_still_for_longer_than_it_ran_has_no_share_of_the_clock() -> None:
    known = {"interruptions": 1, "share_steps": 1.0, "share_time": 0.02, "seconds_down": 5400.0}
    assert costs.goodput(spike(**known, seconds_running=125.0)) == "all of the steps useful; 1 interruption, down for 90 minutes"
    assert costs.goodput(spike(**known, seconds_running=9000.0)).startswith("all of the steps and 2.0 % of the wall clock useful")


def test_a_spike_within_a_stretch_that_never_recovers_did_not_come_back() -> None:
    case = cases.nan()
    case["spikes"] = [cases.spiked(295, 390, "slow", 0.5, 1.0, 1)]
    assert costs.cost(complete(case)) == "the loss never recovers in the remaining 101 steps"
    case["spikes"] = [cases.spiked(100, 110, "slow", 0.5, 1.0, 1)]
    assert costs.cost(complete(case)) == "10 steps in a spike that came back; the loss never recovers in the remaining 101 steps"
    case["spikes"] = [cases.spiked(350, 390, "slow", 0.5, 1.0, 1)]  # it begins where the loss no longer recovers
    assert costs.cost(complete(case)) == "the loss never recovers in the remaining 101 steps"


def test_a_reward_that_does_not_come_back_is_no_loss() -> None:
    case = complete(cases.nan())
    lasting = next(b for b in case["timeline"]["bands"] if b.get("kind") == "non_recovering")
    finding = next(f for f in case["findings"] if f["evidence"])
    lasting["finding"], finding["evidence"][0]["data"]["metric"] = finding["id"], "rl.reward"
    assert "reward never recovers" in costs.cost(case)


def test_the_last_healthy_checkpoint_with_what_speaks_against_it() -> None:
    case = cases.spike()
    row = {"path": "checkpoints/step_400.pt", "step": 400, "kind": "weights"}
    case["run"]["checkpoints"] = {"rows": [row], "findings": []}
    assert checkpoint_table.last_healthy(complete(case)) == "`checkpoints/step_400.pt`, step 400; it holds the weights alone, no optimizer"
    del case["run"]["last_healthy_checkpoint"]
    assert checkpoint_table.last_healthy(complete(case)) == "no healthy checkpoint"
    assert checkpoint_table.last_healthy(complete(cases.nan())) == "no checkpoint beside the log"
    assert checkpoint_table.last_healthy(complete(cases.healthy())) == ""


def test_one_experiment_told_from_both_sides_is_told_once() -> None:
    case = cases.nan()
    case["hypotheses"][0]["settle"] = "Read the batch. If it is odd: A; if not: B."
    case["hypotheses"][1]["settle"] = "Read the batch. If it is not odd: B; if it is: A."
    lead, text = do_next.do_next(complete(case))[0]
    assert lead == "To decide between \u201cOverflow in fp16\u201d and \u201cNaN from a layer\u201d:"
    assert text == "Read the batch. If it is odd: A; if not: B."


def test_nothing_is_explained_where_nothing_was_found() -> None:
    case = cases.inconclusive()
    case["hypotheses"] = cases.ranked(cases.unknown(1.0))
    assert first_screen.top(complete(case)) is None
    said = do_next.do_next(complete(case))
    assert [lead.split(" `")[0] for lead, _ in said][1:] == ["Next time log", "Next time log"]
    assert said[0] == ("Look at everything that was read:", "forensics tables runs/scratch-7 --out tables")


def test_a_cause_that_spans_the_run_leaves_the_when_to_its_finding() -> None:
    case = cases.spike()
    case["hypotheses"][0]["steps"] = case["run"]["steps"]
    assert first_screen.when(complete(case))[0] == "steps 300 to 451"
