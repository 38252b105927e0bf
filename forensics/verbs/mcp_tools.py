"""The tools of `forensics mcp`: each asks one function for data and a function of reports for the text.

The docstrings are what an agent reads before it chooses one.
"""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING

from forensics.errors import ForensicsError

if TYPE_CHECKING:
    from forensics.agents.kept_runs import KeptRuns


class Tools:
    """One public method a tool. ``run`` is a path below the root, or a saved CASE.json; ``name`` picks one of several runs there."""

    def __init__(self, kept: KeptRuns) -> None:
        self._kept = kept

    def list_runs(self, folder: str = ".") -> str:
        """The paths below `folder` that hold runs, the last written first."""
        from forensics.agents import lookups
        from reports import agent_text

        return agent_text.runs(lookups.places(self._kept.inside(folder)))

    def analyze(self, run: str, name: str | None = None) -> str:
        """What went wrong in a run, or that nothing did: verdict, causes that compete, findings, what to do next. Start here.

        `name` picks one of several runs at that path; without it the worst is taken.
        """
        from reports import agent_text

        return agent_text.analysis(self._kept.case(run, name))

    def findings(self, run: str, name: str | None = None) -> str:
        """Every symptom in a run with its id, and what could not be checked."""
        from reports import agent_text

        return agent_text.findings(self._kept.case(run, name))

    def finding(self, run: str, id: str, name: str | None = None) -> str:
        """One symptom with its numbers, its evidence with file and line, and the causes that it speaks to."""
        from reports import agent_text

        case = self._kept.case(run, name)
        return agent_text.finding(case, id) or _none("finding", id, [f["id"] for f in case["findings"]])

    def cause(self, run: str, id: str, name: str | None = None) -> str:
        """One cause in a run: the clues for and against it, what would settle it, what to do."""
        from reports import agent_text

        case = self._kept.case(run, name)
        return agent_text.cause(case, id) or _none("cause", id, [h["id"] for h in case["hypotheses"]])

    def series(self, run: str, metric: str = "", step: int | None = None, points: int = 40, name: str | None = None) -> str:
        """A metric as at most `points` points (60 at most) that keep its extremes, around `step` or of the whole run. Without
        `metric`: what was logged."""
        from forensics.agents import lookups
        from reports import agent_text

        if not metric:
            return agent_text.metrics(self._kept.case(run, name))
        return agent_text.series(asdict(lookups.around(self._kept.run(run, name), metric, step, points)))

    def log_lines(self, run: str, place: str, context: int = 5, name: str | None = None) -> str:
        """The lines of a log around a place that a finding names, such as "train.log line 812"; secrets are masked."""
        from forensics.agents import lookups
        from reports import agent_text

        found = lookups.lines(self._kept.run(run, name), place, context)
        return agent_text.lines(found.file, found.asked, found.lines)

    def batch(self, run: str, step: int, name: str | None = None) -> str:
        """Which samples were in the batch of a step, and whether that is recorded, rebuilt or unknown."""
        from forensics.batches import step_to_samples
        from reports import agent_text

        return agent_text.batch(step_to_samples.answer(self._kept.run(run, name), step))

    def compare(self, run_a: str, run_b: str) -> str:
        """Where two runs part, and what differs in settings, source and data order."""
        from forensics.many_runs import side_by_side
        from reports import compare_page

        return compare_page.terminal(side_by_side.compare(self._kept.alone(run_a), self._kept.alone(run_b)))

    def explain(self, id: str = "", part: int = 1) -> str:
        """How a finding, sign or cause is decided, and when it cannot tell. Without `id`: the list of all, in parts."""
        from forensics import reference_pages
        from reports import agent_text

        return agent_text.bounded(reference_pages.page(id) if id else reference_pages.index(), part)

    def replay_check(self, run: str, adapter: str = "adapter.py", name: str | None = None) -> str:
        """The command that says whether the steps of a run can be run again. It is named, not run: it runs code of the user's."""
        place = shlex.quote(self._kept.inside(run)) + (f" --run {shlex.quote(name)}" if name else "")
        file = shlex.quote(adapter)
        return (
            f"forensics replay {place} --adapter {file} --check\n"
            "This server runs no training code: ask the user to run it. It says in seconds whether the adapter builds the run's model "
            "and meets its log. `hf`, `lightning` and `nanogpt` are ready adapters; `forensics replay --init` writes one to fill in.\n"
            f"If it agrees: forensics replay {place} --adapter {file}"
        )


def _none(what: str, id: str, known: list[str]) -> str:
    raise ForensicsError(f"there is no {what} {id} in this case", f"It has: {', '.join(known[:12]) or 'none'}.")


NAMES = tuple(name for name in vars(Tools) if not name.startswith("_"))  # of the tools
