"""Lines that measure in Chinese, Japanese, Korean or Russian, with the English words that metrics are called by."""

from __future__ import annotations

import re

from parsers.lazy_regex import lazy_re

NOTE = "words for metrics in another language are read as the English ones"
_MARKS = str.maketrans("：，；（）｜＝、", ":,;()|=,")
# 第3轮, 第 3/50 エポック: the count stands inside the word
_COUNTED = lazy_re(r"第\s{0,3}(\d{1,9}(?:\s{0,2}/\s{0,2}\d{1,9})?)\s{0,3}(?:个|個)?(轮|輪|步|回合|エポック|ステップ|epoch|step)")
_COUNTS = {
    "轮": "epoch",
    "輪": "epoch",
    "エポック": "epoch",
    "epoch": "epoch",
    "步": "step",
    "ステップ": "step",
    "step": "step",
    "回合": "episode",
}
_WORDS = {
    "学习率": "lr", "學習率": "lr", "学習率": "lr", "학습률": "lr", "скорость обучения": "lr",
    "梯度范数": "grad norm", "困惑度": "perplexity", "奖励": "reward", "獎勵": "reward", "報酬": "reward", "보상": "reward",
    "损失值": "loss", "损失函数": "loss", "损失": "loss", "損失": "loss", "손실": "loss", "функция потерь": "loss", "потери": "loss",
    "准确率": "accuracy", "準確率": "accuracy", "准确度": "accuracy", "正确率": "accuracy", "正解率": "accuracy", "精度": "accuracy",
    "정확도": "accuracy", "точность": "accuracy", "召回率": "recall", "精确率": "precision",
    "训练集": "train", "訓練集": "train", "训练": "train", "訓練": "train", "学習": "train", "학습": "train", "훈련": "train", "обучение": "train",
    "验证集": "val", "驗證集": "val", "验证": "val", "驗證": "val", "検証": "val", "검증": "val", "валидация": "val",
    "测试集": "test", "測試集": "test", "测试": "test", "測試": "test", "テスト": "test", "테스트": "test",
    "迭代次数": "iteration", "迭代": "iteration", "轮次": "epoch", "エポック": "epoch", "에포크": "epoch", "эпоха": "epoch", "步数": "step",
    "ステップ": "step", "스텝": "step", "шаг": "step", "批次": "batch", "平均": "avg", "평균": "avg", "最佳": "best", "最优": "best",
    "耗时": "time", "用时": "time", "时间": "time", "時間": "time", "시간": "time", "время": "time",
}  # fmt: skip
_GAPS = lazy_re(r" +( |:)")
_ANY = lazy_re("|".join(sorted(map(re.escape, _WORDS), key=len, reverse=True)), re.I)


def in_english(text: str, notes: dict[str, None]) -> str:
    """A line with its words for metrics in English, of which ``notes`` is told; the same line where it has none of them, or no number."""
    if text.isascii() or _ANY.search(text) is None or not any(c.isdigit() for c in text):
        return text
    notes[NOTE] = None
    counted = _COUNTED.sub(lambda m: f" {_COUNTS[m[2]]} {m[1]} ", text.translate(_MARKS))
    return _GAPS.sub(r"\1", _ANY.sub(lambda m: f" {_WORDS[m[0].lower()]} ", counted))
