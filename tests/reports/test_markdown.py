"""The postmortem as Markdown."""

from __future__ import annotations

import re

import cases
import pytest

from reports import markdown


def test_the_whole_story_is_there() -> None:
    text = markdown.render(cases.replayed())
    assert text.startswith("# Step 418 trained on a bad batch")
    assert "- When: step 418; 2026-11-21 02:50:54 UTC; again 2026-11-21 03:19:12 UTC" in text
    assert "- Cause: **Bad data batch**: proven by replay, 98 %" in text
    assert "Learning rate too high &lt; 0.1 %" in text
    assert "| +17 | Both attempts jump at the same step, on the same samples. | `restart-300`, `loss_spike-418` |" in text
    assert "| \u22124 | The gradient norm rose only 6 times. |" in text
    assert "To settle it" not in text  # 98 % are settled
    assert "Leave sample 52 out with `--skip-samples 52`." in text
    assert "## Replay: data" in text and "| batch 418 left out | no spike | 2.08 | 32 |" in text
    assert "- `metrics.jsonl`, line 453: record cut off in the middle, 1 lost" in text
    assert "`rank_disagreement` could not be checked: only rank 0 logged" in text


def test_an_open_case_names_what_decides_between_the_leaders() -> None:
    text = markdown.render(cases.nan())
    assert "**Overflow in fp16**: open, 48 %" in text
    first = text.index("1. To settle \u201cOverflow in fp16\u201d: `forensics replay")
    assert first < text.index("2. To settle \u201cNaN from a layer\u201d: `forensics checkpoint")


def test_a_healthy_case_has_no_cause_in_its_summary() -> None:
    text = markdown.render(cases.healthy())
    assert "1. Nothing needs doing." in text and "- Cause:" not in text


def test_nothing_of_a_hostile_case_is_markup() -> None:
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True}).enable("table")
    text = markdown.render(cases.hostile())
    blocks = parser.parse(text)
    found = {token.type for block in blocks for token in [block, *(block.children or [])]}
    assert found & {"html_block", "html_inline", "link_open", "image"} == set()
    assert {"code_inline", "strong_open", "table_open"} <= found
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028\ud800-\udfff]", text)
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in tables} <= {4, 5, 6}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a_b *c* [d]", r"a\_b \*c\* \[d\]"),
        ("1. not a list", r"1\. not a list"),
        ("- nor this", r"\- nor this"),
        ("use `x_y` here", "use `x_y` here"),
        ("a ` alone", "a \\` alone"),
        ("two\nlines", "two lines"),
        (None, ""),
    ],
)
def test_escaping(text: str | None, expected: str) -> None:
    assert markdown.esc(text) == expected


def test_code_with_backticks_gets_a_longer_fence() -> None:
    assert markdown.code("a``b") == "```a``b```"
    assert markdown.code("`") == "`` ` ``"


@pytest.mark.parametrize("name", cases.ALL)
def test_every_case_renders_the_same_twice(name: str) -> None:
    assert markdown.render(cases.ALL[name]()) == markdown.render(cases.ALL[name]())


def test_many_findings_are_counted_not_listed() -> None:
    assert "- and 160 more in the case file" in markdown.render(cases.crowded())


ACTIVE = [
    "see https://evil.example/x?a=1.", "see HTTP://EVIL.example", "ftp://evil.example", "www.evil.example now", "mailto:a@evil.example", "a.b@evil.example",
    "ask @octocat now", "(@org/team)", "fixes #123", "torvalds/linux#1", "GH-26", "!42 merged", "%3 done", "~bug", "&7", "$12", "at 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "at a1b2c3d", ":rocket: up", ":+1:", "/close", "/assign @me", "javascript:alert(1)", "x@y.example@z", "\u200b@octocat", "see https://a.example/ `x`",
]  # fmt: skip


@pytest.mark.parametrize("text", ACTIVE)
def test_what_github_and_gitlab_make_active_is_code(text: str) -> None:
    from markdown_it import MarkdownIt

    blocks = MarkdownIt("commonmark").parse(markdown.esc(text))
    plain = "".join(t.content for b in blocks for t in b.children or [] if t.type in ("text", "text_special"))
    active = r"://|www\.|mailto:|javascript:|@\w|#\d|GH-\d|[!%&$]\d|~\w|\b[0-9a-f]{7,}\b|:[\w+]+:|^/\w"
    assert not re.search(active, plain), plain
    assert "".join(t.content for b in blocks for t in b.children or []).replace("\\u200b", "\u200b") == text.replace("`", "")


@pytest.mark.parametrize(
    "text",
    [
        "=====",
        "-----",
        ":---",
        "***",
        "___",
        "# x",
        "> x",
        "+ x",
        "2) x",
        "```",
        "~~~",
        "| a | b |",
        "    x",
        "\tx",
        "[a]: /b",
        "<b>x",
        "&lt;",
        "![x](y)",
    ],
)
def test_no_text_begins_a_block_or_markup(text: str) -> None:
    from markdown_it import MarkdownIt

    for before in ("", "above\n"):
        blocks = MarkdownIt("commonmark", {"html": True}).enable("table").parse(before + markdown.esc(text))
        inline = {t.type for b in blocks for t in b.children or []}
        assert [b.type for b in blocks] == ["paragraph_open", "inline", "paragraph_close"], blocks
        assert inline <= {"text", "text_special", "code_inline", "softbreak"}
