"""The summary for a terminal."""

from __future__ import annotations

import re

import cases
import pytest

from reports import terminal

ANSI = re.compile("\x1b\\[[0-9;]*m")


def test_the_first_screen_of_a_spike() -> None:
    lines = terminal.render(cases.spike()).splitlines()
    assert 15 <= len(lines) <= 25
    assert lines[0].startswith("llm-124m-a, finished, steps 0 to 599, 2 attempts \u00b7 cause likely, ")
    assert lines[1].startswith("UNHEALTHY: Step 418 trained on a bad batch")
    text = "\n".join(lines)
    assert "Cause    Bad data batch (likely, 86 %)" in text
    assert "+17  Both attempts jump" in text and "Log says Training loss, both attempts, 4.06 at 418 (metrics.jsonl line 419)" in text
    assert "152 steps repeated" in text and "checkpoints/step_400.pt, step 400" in text
    assert cases.REPLAY in text


def test_the_arrow_stands_under_the_peak() -> None:
    lines = terminal.render(cases.spike()).splitlines()
    arrow = next(line for line in lines if "\u2191418 fast" in line)
    top = next(line for line in lines if line.lstrip().startswith("4.3"))
    column = arrow.index("\u2191")
    assert "\u2800" not in top[column : column + 1]
    assert set(top[column - 5 : column - 1]) == {"\u2800"}


def test_nan_is_marked_above_the_chart() -> None:
    lines = terminal.render(cases.nan(), width=100).splitlines()
    marked = next(line for line in lines if "\u00d7" in line)
    assert marked.lstrip().startswith("NaN") and marked.index("\u00d7") > 60


def test_no_colour_unless_asked_and_the_same_words_with_it() -> None:
    plain, colored = terminal.render(cases.spike()), terminal.render(cases.spike(), color=True)
    assert "\x1b" not in plain
    assert ANSI.search(colored) and ANSI.sub("", colored) == plain


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("name", cases.ALL)
def test_lines_keep_to_the_width_but_for_commands(name: str, width: int) -> None:
    lines = terminal.render(cases.ALL[name](), width=width).splitlines()
    assert len(lines) <= 26
    assert [line for line in lines if len(line) > width and "forensics " not in line] == []


def test_a_hostile_case_cannot_steer_the_terminal() -> None:
    text = terminal.render(cases.hostile())
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", text)
    assert "\\x1b[31m" in text and "\\u202e" in text


def test_a_healthy_and_an_inconclusive_run() -> None:
    healthy, open_ = terminal.render(cases.healthy()), terminal.render(cases.inconclusive())
    assert "Do next  1. Nothing needs doing." in healthy and "Cause" not in healthy
    assert "INCONCLUSIVE: Only 6 loss values" in open_ and "missing: loss.train, loss_scale and sample ids" in open_


def test_an_observation_that_is_weighed_twice_stands_there_once() -> None:
    case = cases.spike()
    leading, *others = case["hypotheses"]
    twice = [cases.clue("It jumps. Where that is seen, this cause is common.", 5.0, "a"), cases.clue("It jumps.", 0.5, "a")]
    case["hypotheses"] = [leading | {"clues": twice}, *others]
    lines = [x.strip() for x in terminal.render(case).splitlines() if "It jumps" in x]
    assert lines == ["+5.5  It jumps. Where that is seen, this cause is common."]
