"""Puts a replay into the case: clues for the causes, ranked again, culprits, the answer; a skip list and a script to go on with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from forensics import pipeline, ranking
from forensics.case import Case, Clue, Hypothesis
from forensics.case_parts import headline, run_again
from forensics.causes import weigh
from forensics.causes.files import UNKNOWN, causes
from forensics.errors import ForensicsError
from forensics.replays import adapter_source, advice, session, skip_list, verdict
from forensics.replays.session import Options, Result
from parsers.tables import Run
from parsers.walk import is_regular

NAMED = 3  # samples in the headline
UNSEEN = "The log shows none of its effects: it starts as likely as all unlisted causes together."


def adapter_file(name: str) -> Path:
    """The user's file, or one of ours by its name (`hf`). Raises ForensicsError where there is none."""
    ours = Path(__file__).resolve().parent / "adapters"
    path = ours / f"{name}.py" if name.isidentifier() and is_regular(ours / f"{name}.py") else Path(name)
    if path.exists() and not path.is_dir() and not is_regular(path):
        raise ForensicsError(f"{name} is not a regular file: not opened", "Give a Python file.")
    if not is_regular(path):
        known = ", ".join(sorted(p.stem for p in ours.glob("[a-z]*.py")))
        hint = f"Give a Python file, or one of ours: {known}. `forensics replay --init` writes a template."
        raise ForensicsError(f"there is no adapter {name}", hint)
    adapter_source.refuse_unless_adapter(path)
    return path


def options_of(adapter: str, *, max_time: float | None = None, memory: float | None = None, **given: Any) -> Options:
    """The options as people give them: an adapter by its path or, if it is ours, its name; minutes; GB. Raises ForensicsError for no adapter."""
    given |= {"max_time": 60 * max_time} if max_time else {}
    given |= {"memory": int(1e9 * memory)} if memory else {}
    return Options(**given, adapter=adapter_file(adapter))


def replayed(run: Run, options: Options, progress: Any, *, command: Sequence[str] = ()) -> tuple[Case, Result]:
    """The case of a run with its replay."""
    case = pipeline.analyze_run(run, command=command)
    result = session.replay(run, case, options, progress or (lambda *_: None))
    return concluded(run, case, result, options), result


def concluded(run: Run, case: Case, result: Result, options: Options) -> Case:
    """The case with the replay in it. Where replay failed before a verdict, the analysis without it stands; a replay that ran and
    names nobody accuses nobody."""
    document, outcomes = result.document, result.outcomes
    said = document["verdict"]
    document |= {"skip": [{"step": c["step"], "samples": c["samples"]} for c in result.culprits], "script": _script(run, result, options)}
    if result.failed and outcomes is None:
        return replace(case, replay=document)
    found = list(case.hypotheses)
    if outcomes is not None and not result.unproven:
        named, others = verdict.weights(said, outcomes, result.low_precision)
        found = _weighed(found, named, others, f"Replay: {document['why']}", where=_where(result)) if others is not None else found
        for sentence, weights in verdict.more(said, outcomes.further):
            found = _weighed(found, weights, 0.0, f"Replay: {sentence}.")
    own = {h.id: h.settle for h in pipeline.causes_of(run)[0]}  # alone; the ranking says it anew for the first two
    ranked = ranking.rank([replace(h, settle=own.get(h.id, "")) for h in found])
    hypotheses = advice.resolved(run, ranked, document, str(options.adapter))
    grave = any(f.severity in ("warning", "critical") for f in case.findings)
    told = headline.sentence(run, case.verdict, case.findings, hypotheses, case.checks, _proof(result)) if grave else case.answer
    culprits = tuple({k: v for k, v in c.items() if k not in ("effect", "named")} for c in result.culprits)
    section = case.run | {"again": run_again.ranked_anew(case.verdict, case.run, hypotheses)}
    return replace(case, run=section, hypotheses=hypotheses, answer=told, culprits=culprits, replay=document)


def _proof(result: Result) -> str:
    """What the experiments showed, for the headline; empty where they explain nothing."""
    document = result.document
    if result.culprits and not result.unproven:
        named = [f"sample{'s' * (len(c['samples']) > 1)} {_named(c['samples'])} of step {c['step']}"
                 if c["samples"] else f"the batch of step {c['step']}" for c in result.culprits]  # fmt: skip
        return f"Replayed without {' and '.join(named[:2])}{', and others' * (len(named) > 2)}, it does not happen."
    explains = document["verdict"] not in (verdict.NOTHING, verdict.UNDECIDED) and document.get("why")
    return f"Replay: {document['why'].split('. ')[0].rstrip('.')}." if explains else ""


def _named(samples: list[Any]) -> str:
    """'482 and 485', '1, 2, 3 and 5 more'."""
    shown = [str(s) for s in samples[:NAMED]] if len(samples) > NAMED + 1 else [str(s) for s in samples]
    last = f"{len(samples) - NAMED} more" if len(shown) < len(samples) else shown.pop()
    return f"{', '.join(shown)} and {last}" if shown else last


def _where(result: Result) -> tuple[int, int]:
    """The steps of the culprits, else those of the effect."""
    steps = [int(c["step"]) for c in result.culprits] or [int(s) for s in result.document.get("steps") or [0, 0]]
    return min(steps), max(steps)


def _weighed(
    known: Sequence[Hypothesis], named: dict[str, float], others: float, text: str, *, where: tuple[int, int] | None = None
) -> list[Hypothesis]:
    """The causes with a clue of these decibans; with `where` (the steps) also those that the log gave no reason to weigh, where the replay gives one."""
    found = list(known)
    present = {h.id for h in found}
    for cause in named:
        if where is not None and cause not in present and cause != UNKNOWN and named[cause] >= 10:
            first, last = where
            numbers = {"start": first, "peak": last, "first": first, "last": last, "window": weigh.window(first, last)}
            do = tuple(weigh.filled(causes()[cause].interventions, numbers))[:4]
            found.append(Hypothesis(cause, causes()[cause].title, (Clue(UNSEEN, 0.0),), interventions=do, steps=where))
    weighed = [(h, 0.0 if h.id == UNKNOWN else named.get(h.id, others)) for h in found]
    return [replace(h, clues=(*h.clues, Clue(text, weight, (), "replay"))) if weight else h for h, weight in weighed]


def _script(run: Run, result: Result, options: Options) -> str:
    first, last = (result.document.get("steps") or [0, 0])[:2]
    return skip_list.script(result.culprits, advice.command(run, str(options.adapter), "--steps", f"{first}:{last}"))
