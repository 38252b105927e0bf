"""Peak arithmetic of accelerators, and the share of it that a transformer's training uses (MFU).

MFU = 6 N tokens/s / (devices x peak): six FLOPs a parameter and token for forward and backward, attention not counted
(Kaplan et al., arXiv:2001.08361; Chowdhery et al., PaLM, arXiv:2204.02311, appendix B). Peaks are dense bf16 or fp16
tensor-core figures from the makers' data sheets, FLOP/s without sparsity.
"""

from __future__ import annotations

import re

from forensics.run import settings
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

PEAKS = {  # the first pattern that is found names the device
    r"\bGB?200\b|\bB200\b": 2250e12, r"\bB100\b": 1750e12, r"\bH[12]00\b.*\bPCIe\b": 756e12, r"\bGH200\b|\bH[12]00\b": 989e12,
    r"\bH800\b": 989e12, r"\bH20\b": 148e12, r"\bA[18]00\b": 312e12, r"\bA40\b": 150e12, r"\bA30\b": 165e12, r"\bA10G?\b": 125e12,
    r"\bL40S\b": 362e12, r"\bL40\b": 181e12, r"\bL4\b": 121e12, r"\bV100\b": 125e12, r"\bT4\b": 65e12, r"\bP100\b": 21e12,
    r"\bRTX ?4090\b": 165e12, r"\bRTX ?3090\b": 71e12, r"\bRTX ?A6000\b": 155e12, r"\bMI300X\b": 1307e12, r"\bMI250X?\b": 383e12,
    r"\bTPU ?v5p\b": 459e12, r"\bTPU ?v5e\b": 197e12, r"\bTPU ?v4\b": 275e12,
}  # fmt: skip
DEVICE_KEYS = lazy_re(
    r"(?i)(?:^|[./_])(?:gpu|gpu_?(?:name|type|model)|device_?name|accelerator(?:_type)?|gpu_nvidia)(?:[./_]?\d*[./_]?name)?$"
)
_PARAMETER_KEYS = lazy_re(
    r"(?i)(?:^|[./_ ])(?:n_?params|num_?params|params|total_params|num_parameters|n_parameters|parameters|model_params|number_of_parameters"
    r"|parameter_count|param_count)$"
)
_SAID = lazy_re(r"(?i)number of (?:trainable )?parameters|model (?:size|has)\b.{0,30}param")
_COUNT = lazy_re(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?) ?([KMB])?\b")


def peak(run: Run) -> tuple[str, float] | None:
    """(name, FLOP/s) of the device that config names; None where it names none, or one that is not in the table."""
    for key, value in zip(*(run.tables["config"][c].to_pylist() for c in ("key", "value")), strict=True):
        if DEVICE_KEYS.search(str(key)):
            text = str(value).strip('"')
            for pattern, flops in PEAKS.items():
                if re.search(pattern, text, re.IGNORECASE):
                    return text[:60], flops
    return None


def parameters(run: Run) -> float | None:
    """Number of parameters, from config or from a line that says it."""
    for key, value in zip(*(run.tables["config"][c].to_pylist() for c in ("key", "value")), strict=True):
        if _PARAMETER_KEYS.search(str(key)) and (number := settings.as_number(str(value).strip('"').replace(",", ""))) and number >= 1e5:
            return number
    for text in run.tables["events"]["text"].to_pylist():
        for m in _COUNT.finditer(str(text)[:300]) if _SAID.search(str(text)[:300]) else ():
            number = float(m[1].replace(",", "")) * {"K": 1e3, "M": 1e6, "B": 1e9}.get(m[2] or "", 1)
            if number >= 1e5:
                return number
    return None


def mfu(tokens_per_second: float, n: float, devices: float, flops: float) -> float:
    """6 N tokens/s over what the devices could do, as a fraction."""
    return 6 * n * tokens_per_second / (devices * flops)
