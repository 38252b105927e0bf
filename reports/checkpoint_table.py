"""The checkpoints of the run as a table and sentences, for the page and Markdown alike."""

from __future__ import annotations

from typing import Any

from reports import text_format

Case = dict[str, Any]
HEAD = (">step", "file", "holds", ">size", "state", ">optimizer has counted", ">norm of weights", "moved since the last")
GRAVE = ("critical", "warning")
_HOLDS = {"full": "weights and optimizer", "weights": "weights", "optimizer": "optimizer", "other": "neither weights nor optimizer"}


def rows(case: Case) -> list[dict[str, Any]]:
    """One dict for each checkpoint: its path, whether it is the last healthy one, and the cells after its path."""
    last = case["run"].get("last_healthy_checkpoint")
    best = last.get("path") if isinstance(last, dict) else None
    return [{"step": _figure(r["step"]), "path": r["path"], "best": r["path"] == best, "bad": r["healthy"] is False,
             "holds": _HOLDS.get(r["kind"], r["kind"]), "size": text_format.bytes_(r["bytes"]), "state": _state(r, best, case["run"]["again"]["trouble_from"]),
             "counted": _figure(r["optimizer_steps"]), "norm": _figure(r["norms"].get("weights")), "moved": _moved(r)}
            for r in case["run"]["checkpoints"]["rows"]]  # fmt: skip


def cells(row: dict[str, Any]) -> list[str]:
    """In the order of HEAD, without the path."""
    return [row[k] for k in ("step", "holds", "size", "state", "counted", "norm", "moved")]


def last_healthy(case: Case) -> str:
    """The last healthy checkpoint, as path and step, with what speaks against it; in trouble also that there is none."""
    found, saved = case["run"].get("last_healthy_checkpoint"), case["run"]["checkpoints"]["rows"]
    if not found:
        return _without(saved, case["findings"], case["run"]["again"]["trouble_from"]) if case["verdict"] == "unhealthy" else ""
    if not isinstance(found, dict):
        return f"`{found}`"
    text = f"`{found.get('path', '?')}`" + (f", step {found['step']}" if found.get("step") is not None else "")
    if any(r["path"] == found.get("path") and r["kind"] == "weights" for r in saved):
        text += "; it holds the weights alone, no optimizer"
    return text + (f". {str(found['warning'])[:1].upper()}{str(found['warning'])[1:]}" if found.get("warning") else "")


def _without(saved: list[dict[str, Any]], findings: list[dict[str, Any]], since: Any) -> str:
    """Why there is no checkpoint to go back to: not known is not none."""
    if not saved:
        return "no checkpoint beside the log"
    if all(r.get("step") is None for r in saved):
        return (
            "not known: the checkpoint does not say its step"
            if len(saved) == 1
            else f"not known: none of {len(saved)} checkpoints says its step"
        )
    began = [f["steps"][0] for f in findings if f.get("severity") in GRAVE and isinstance((f.get("steps") or [None])[0], int)]
    if not began:
        return "not known: nothing says at which step the trouble began"
    if since is not None and any(r.get("healthy") and r.get("step") is not None for r in saved):
        return f"no healthy checkpoint from before step {text_format.number(since)}, where the trouble began"
    return "no healthy checkpoint"


def found(case: Case) -> list[tuple[str, str]]:
    """(severity, sentence) of what is broken in them."""
    told = case["run"]["checkpoints"]["findings"]
    return [(f["severity"], f"{f['path']}: {f['title']}") for f in told]


def warning(case: Case) -> str:
    last = case["run"].get("last_healthy_checkpoint")
    return str(last.get("warning") or "") if isinstance(last, dict) else ""


def _state(r: dict[str, Any], best: Any, since: Any) -> str:
    if r["complete"] is False:
        return "incomplete"
    if r["healthy"] is None:
        return "values not read" if r["kind"] in ("weights", "full") else "no weights"
    if not r["healthy"]:
        return "broken values"
    if r["path"] == best:
        return "the last healthy one"
    late = since is not None and r["step"] is not None and r["step"] >= since
    return "no broken value, but saved after the trouble began" if late else "no broken value"


def _moved(r: dict[str, Any]) -> str:
    m = r["moved"]
    if not m or m.get("relative") is None:
        return ""
    text = f"{text_format.percent(m['relative']) if m['relative'] < 1 else text_format.number(m['relative']) + ' times'} of the norm"
    return text + (f", {text_format.number(m['step_over_rate'])} learning rates a step" if m.get("step_over_rate") is not None else "")


def _figure(x: Any) -> str:
    return "" if x is None else text_format.number(x)
