"""Errors of an index: which number was out of range, from the assert of the kernel that met it or from torch's words on the CPU.

The names in the asserts are those of the kernels (ATen/native/cuda: Indexing.cu, Loss.cu, NLLLoss2d.cu); a CUDA error alone does not say it.
"""

from __future__ import annotations

import re

from forensics.run import endings
from forensics.run.kinds import Kind
from forensics.run.once import once
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

_TOKEN = lazy_re(
    r"srcIndex < srcSelectDimSize|index out of range in self|embedding.{0,80}\b(?:index|indices)\b.{0,40}(?:out of|bound|range)", re.I
)
_LABEL = lazy_re(
    r"\bt >= 0 && t < n_classes|cur_target >= 0|target_val >= zero|Target -?\d+ is out of bounds|label.{0,30}out of (?:range|bound)", re.I
)
_SHARE = lazy_re(r"input_val >= zero && input_val <= one|all elements of (?:input|target) should be between 0 and 1", re.I)
_OTHER = lazy_re(
    r"-sizes\[i\] <= index|index >= -sizes\[i\] && index < sizes\[i\]|ind(?:ex)? ?>= ?0 && ind(?:ex)? ?< ?\w+|idx_dim >= 0", re.I
)
KINDS = (
    (_TOKEN, "tokens", "an index into an embedding is not below its size: a token or position id", (
        "Compare the largest input id with the size of the embedding: tokens that were added, another tokenizer, a sequence longer than its positions.",
        "With the data at hand, `--data` counts ids out of range in the batch.",
    )),
    (_LABEL, "labels", "a target is no class: below 0, or not below their number", (
        "Compare the labels with the number of outputs, and the ignored label with ignore_index (-100 by default).",
        "With the data at hand, `--data` counts labels out of range in the batch.",
    )),
    (_SHARE, "shares", "a loss of probabilities was given values outside 0 to 1", ("Pass a sigmoid's output, or use the loss that takes logits.",)),
    (_OTHER, "index", "an index is out of range", ("Run the step on the CPU, or with CUDA_LAUNCH_BLOCKING=1: the traceback then names the line.",)),
)  # fmt: skip


@once
def of_run(run: Run) -> Kind | None:
    """The first error line that tells of an index out of range."""
    for e in endings.events(run, "traceback", "warning", "hardware"):
        for pattern, kind, words, do in KINDS:
            if e["level"] == "error" and pattern.search(str(e["text"])):
                return Kind(kind, words, f"{run.where(e['source'], e['at'])} says that {words}.", do)
    return None
