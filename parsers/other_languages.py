"""Words for metrics in other languages: as English ones in the lines of a console log, and in the names of columns, keys and tags.

Chinese, Japanese, Korean and Russian words are found wherever they stand in a line. Those of European languages are looked up whole, without their accents
(``époque``, ``epoque``), and only words that are none in English are known; short forms count beside one (``perte_app``). Where such a line
writes fractions with a comma, they are read with a point.
"""

from __future__ import annotations

import re
import unicodedata

from parsers.lazy_regex import lazy_re

NOTE = "words for metrics in another language are read as the English ones"
_MARKS = str.maketrans("：，；（）｜＝、", ":,;()|=,")
# 第3轮, 第 3/50 エポック: the count stands inside the word
_COUNTED = lazy_re(r"第\s{0,3}(\d{1,9}(?:\s{0,2}/\s{0,2}\d{1,9})?)\s{0,3}(?:个|個)?(轮|輪|步|回合|エポック|ステップ|epoch|step)")
_COUNTS = (
    dict.fromkeys(("轮", "輪", "エポック", "epoch"), "epoch") | dict.fromkeys(("步", "ステップ", "step"), "step") | {"回合": "episode"}
)
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

# German, French, Spanish, Portuguese, Italian, Polish, Turkish, Dutch and Swedish; several words are a name together
_EUROPEAN = {
    "learning rate": "lernrate leersnelheid inlarningshastighet taux_d_apprentissage taux_apprentissage taux_appr tasa_de_aprendizaje tasa_aprendizaje"
    " taxa_de_aprendizado taxa_de_aprendizagem taxa_aprendizado tasso_di_apprendimento tasso_apprendimento tasso_appr krok_uczenia"
    " wspolczynnik_uczenia szybkosc_uczenia ogrenme_orani ogrenme_hizi",
    "train loss": "trainingsverlust strata_ucz strata_uczenia strata_treningowa", "val loss": "validierungsverlust strata_wal strata_walidacji", "test loss": "testverlust",
    "loss": "verlust verlustwert verluste perte pertes perdida perdidas perda perdas perdita perdite straty kayip verlies forlust",
    "accuracy": "genauigkeit trefferquote exactitude exactitud acuracia accuratezza dokladnosc dogruluk nauwkeurigheid noggrannhet",
    "wer": "wortfehlerrate", "cer": "zeichenfehlerrate", "error rate": "fehlerrate", "error": "fehler erreur errore blad hata",
    "train": "entrenamiento entreno treino treinamento addestramento apprentissage entrainement uczenie uczenia treningowa egitim",
    "val": "validierung pruf prufung pruef pruefung validacion validacao validazione walidacja walidacyjna dogrulama validatie",
    "epoch": "epoche epochen epoque epoques epoca epocas epoka epok durchlauf",
    "step": "schritt schritte etape paso pasos passo passos krok adim",
    "reward": "belohnung ertrag recompense recompensa ricompensa nagroda odul beloning", "episode": "folge episodio",
    "grad norm": "gradientennorm norme_grad norme_gradient norma_grad norma_del_gradiente norma_gradiente",
    "actor": "akteur", "critic": "kritiker", "time": "dauer laufzeit duree tiempo czas", "left": "restan faltam verbleibend restante",
}  # fmt: skip
_SHORT = dict.fromkeys(("app", "apprent", "ent", "entr", "addestr"), "train")
_ENGLISH = {foreign: english for english, words in _EUROPEAN.items() for foreign in words.split()}
_ENDS = frozenset(foreign.rpartition("_")[2] for foreign in _ENGLISH)  # each name has one of these words
_LATIN = str.maketrans({c: unicodedata.normalize("NFD", chr(c))[0] for c in range(0xC0, 0x180)} | {"ß": "s", "ı": "i", "ł": "l", "ø": "o"})
_WORD = lazy_re(r"[a-z]{3,20}")
_NAME = lazy_re(  # the longest name first
    r"(?<![a-z])(?:" + "|".join(sorted((name.replace("_", r"[ _'’.-]{1,2}") for name in _ENGLISH), key=len, reverse=True)) + r")(?![a-z])"
)
_BETWEEN = lazy_re(r"[ '’.-]{1,2}")
_SHORTENED = lazy_re(rf"(?<![a-z])(?:{'|'.join(_SHORT)})(?![a-z])")
_POINT, _COMMA = lazy_re(r"\d\.\d"), lazy_re(r"(?<=\d),(?=\d)")


def in_english(text: str, notes: dict[str, None]) -> str:
    """A line with its words for metrics in English, of which ``notes`` is told; the same line where it has none of them, or no number."""
    found = text
    if not text.isascii() and _ANY.search(text) is not None:
        counted = _COUNTED.sub(lambda m: f" {_COUNTS[m[2]]} {m[1]} ", text.translate(_MARKS))
        found = _GAPS.sub(r"\1", _ANY.sub(lambda m: f" {_WORDS[m[0].lower()]} ", counted))
    elif (named := named_in_english(text)) != text:
        found = named if _POINT.search(named) else _COMMA.sub(".", named)
    if found is text or not any(c.isdigit() for c in text):
        return text
    notes[NOTE] = None
    return found


def named_in_english(text: str) -> str:
    """A name or a line with its European words for metrics in English; the same text where it has none."""
    plain = without_accents(text).lower()
    if len(plain) != len(text) or _ENDS.isdisjoint(_WORD.findall(plain)):
        return text
    spans = [(*m.span(), _ENGLISH[_BETWEEN.sub("_", m[0])]) for m in _NAME.finditer(plain)]
    if not spans:
        return text
    taken = [(a, b) for a, b, _ in spans]
    spans += [(*m.span(), _SHORT[m[0]]) for m in _SHORTENED.finditer(plain) if not any(a <= m.start() < b for a, b in taken)]
    for a, b, word in sorted(spans, reverse=True):
        text = f"{text[:a]}{word}{text[b:]}"
    return text


def without_accents(text: str) -> str:
    """The text with plain Latin letters, each in its place."""
    return text if text.isascii() else text.translate(_LATIN)
