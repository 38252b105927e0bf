"""Logs that name their metrics in Chinese, Japanese, Korean or Russian."""

from __future__ import annotations

from pathlib import Path

import pytest

import parsers
from parsers.other_languages import NOTE, in_english

LINES = {
    "zh": "第 {i}/5 轮，训练损失：{a:.3f}，验证损失：{b:.3f}\n",
    "zh in part": "Epoch {i} 完成 | 训练损失: {a:.3f} | 验证损失: {b:.3f} | 时间: 3.5s\n",
    "ja": "エポック {i}/5 訓練損失: {a:.3f} 検証損失: {b:.3f}\n",
    "ko": "에포크 {i}/5 - 학습 손실: {a:.3f} - 검증 손실: {b:.3f}\n",
    "ru": "Эпоха {i}/5, обучение потери: {a:.3f}, валидация потери: {b:.3f}\n",
}


@pytest.mark.parametrize("language", LINES)
def test_losses_and_epochs(language: str, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(LINES[language].format(i=i, a=3 / i, b=4 / i) for i in range(1, 6)), encoding="utf-8")
    run = parsers.read_all(log)[0]
    found = {(r["name"], r["step"]): r["value"] for r in run.tables["metrics"].to_pylist()}
    assert [found["loss.train", i] for i in range(1, 6)] == [round(3 / i, 3) for i in range(1, 6)]
    assert [found["loss.eval", i] for i in range(1, 6)] == [round(4 / i, 3) for i in range(1, 6)]
    assert NOTE in run.sources[0].note


@pytest.mark.parametrize("text", ["训练开始", "step 3 loss 2.5", "保存模型到 model_3.pt"])
def test_a_line_without_a_word_for_a_metric_or_without_a_number_stays(text: str) -> None:
    notes: dict[str, None] = {}
    assert in_english(text, notes) is text
    assert not notes
