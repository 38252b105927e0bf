"""Results that Ray Tune prints to the console as nested YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import parsers


def result(trial: str, i: int) -> str:
    return (
        f"Result for {trial}:\n  custom_metrics: {{}}\n  date: 2022-04-22_01-29-09\n  done: false\n  episode_reward_mean: {i / 10}\n"
        f"  hostname: node-1\n  info:\n    learner:\n      default_policy:\n        learner_stats:\n          mean_q: {2.5 * i}\n"
        f"        td_error:\n        - -0.03\n        - 0.95\n    num_steps_trained: {32 * i}\n  pid: 612604\n  timestamp: {1_650_590_949 + 10 * i}\n"
        f"  training_iteration: {i}\n  trial_id: '{trial}'\n  warmup_time: 3.9\n  \n(pid=7) worker {i} of 8 is idle\n== Status ==\nMemory usage: 24.9/125.3 GiB\n"
    )


def rows(folder: Path, text: str) -> list[dict[str, Any]]:
    (folder / "nohup.out").write_text(text)
    return [r for r in parsers.read(folder).tables["metrics"].to_pylist() if r["source"] == "nohup.out"]


def test_nested_keys_are_tags_and_the_iteration_is_the_step(tmp_path: Path) -> None:
    found = rows(tmp_path, "".join(result("DQN_shogi_96499_00000", i) for i in range(1, 6)))
    values = {(r["tag"], r["step"]): r["value"] for r in found}
    assert values["info/learner/default_policy/learner_stats/mean_q", 4] == 10
    assert values["episode_reward_mean", 5] == 0.5
    assert {r["tag"] for r in found} == {
        "episode_reward_mean",
        "info/learner/default_policy/learner_stats/mean_q",
        "info/num_steps_trained",
    }
    assert [r["time"] for r in found if r["tag"] == "episode_reward_mean"] == [1_650_590_949 + 10 * i for i in range(1, 6)]


def test_of_several_trials_the_first_is_read(tmp_path: Path) -> None:
    found = rows(tmp_path, "".join(result(trial, i) for i in range(1, 6) for trial in ("PPO_a_00000", "PPO_a_00001")))
    assert len([r for r in found if r["tag"] == "episode_reward_mean"]) == 5
    assert "those of 1 other trial in this log are left out" in parsers.read(tmp_path).sources[0].note
