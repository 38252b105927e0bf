"""Processes that wait: for each other, for a loader or storage, and silence that says so."""

from __future__ import annotations

from forensics.detectors import ending as symptom
from forensics.detectors import stall
from forensics.run import connections, hang_ranks, how_it_ended, settings, silence
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re

_WAITS = lazy_re(r"(?i)\bwait(?:s|ing)?\b|\bstill (?:in|inside|blocked)\b")
WAITING = ("hang", "exception", "signal", "unknown", "cut", "running")  # ends that a process which waits may have


def collective_timed_out(s: Symptoms) -> Sign:
    """The log speaks of processes that wait for each other (time-outs of collectives or of the loader), not as the echo of a crash."""
    run = s.run
    lines = [f for f in s.of(stall.Facts) if f.facts.at_end and f.facts.said]
    real = [f for f in lines if not f.facts.echo]
    if real and (e := how_it_ended.ending(run)).kind not in WAITING:
        return absent(f"Processes waited for one that had died of something else: {e.says}", real, where=e.where)
    if real and how_it_ended.status(run) != "finished":
        facts = real[0].facts
        return seen(f"{real[0].title}.", real, do=facts.do or (), kind=facts.words or "", id=facts.kind, first=facts.step, last=facts.step)
    if real:
        return absent(f"{real[0].facts.lines} lines speak of processes that wait, and the run finished all the same.", real)
    if lines:
        return absent("The lines of broken connections came with a crash.", lines)
    waits = hang_ranks.said(run)
    if waits and _echo(s):
        return absent(f"{len(waits)} lines of broken connections came with a crash.", where=run.where(waits[0]["source"], waits[0]["at"]))
    if waits and how_it_ended.status(run) != "finished":
        where = run.where(str(waits[0]["source"]), waits[0]["at"])
        step = how_it_ended.ending(run).step
        kind = connections.meeting(run) if step is None else connections.broke(run)
        said, do, words = (kind.why, kind.do, kind.words) if kind is not None else ("", (), "")
        text = f'The log says: "{str(waits[0]["text"]).splitlines()[-1][:160]}". {said}'.rstrip()
        return seen(text, where=where, do=do, kind=words, first=step, last=step)
    if settings.number(run, "world_size") == 1:
        return absent("One process ran alone, which waits for no other.", where=_world(s))
    e = how_it_ended.ending(run)
    if e.kind == "hang" and _WAITS.search(e.says):
        return seen(f'The last that the log says is "{e.says}".', where=e.where, first=e.step, last=e.step)
    if e.kind in ("unknown", "cut"):
        return cannot_tell("no line says how the run ended.")
    return absent(f"No line speaks of processes that wait. {symptom.sentence(e)}", where=e.where)


def silence_before_end(s: Symptoms) -> Sign:
    """The job outlived its last step by two minutes, or half a minute of heartbeats, and fifty usual steps, and did not come to its own end."""
    found = silence.silence(s.run)
    if found is None:
        return cannot_tell("no clock was logged that spans the steps and the end.")
    seconds, usual, what = found
    final = [f for f in s.of(stall.Facts) if f.facts.at_end]
    step = final[0].facts.step if final else how_it_ended.ending(s.run).step
    finished = how_it_ended.status(s.run) == "finished"
    if silence.stalled(s.run) and not finished:
        text = f'{silence.in_words(seconds)} of silence lie between step {step} and the last sign of life: "{what[:100]}".'
        return seen(text, final, first=step, last=step, minutes=round(seconds / 60), usual=usual)
    if seconds <= 0 and not finished:
        return cannot_tell("nothing with a clock was logged after the last step.")
    return absent(f"The last sign of life came {seconds:.3g} s after the last step; {usual:.3g} s lie between rows as a rule.")


def hang_kind_known(s: Symptoms) -> Sign:
    """What the ranks said, or what ran when the silence began, tells what the processes waited for."""
    final = [f for f in s.of(stall.Facts) if f.facts.at_end and not f.facts.echo]
    if not final:
        return does_not_arise("no silence at the end and no line of processes that wait was found.")
    told = [f for f in final if f.facts.words and f.facts.why]
    if not told:
        return cannot_tell("neither lines of the ranks nor the load of the devices tell what was waited for.")
    facts = told[0].facts
    step, ranks_told = facts.step, facts.ranks
    return seen(str(facts.why), told, do=facts.do or (), kind=facts.words, id=facts.kind, ranks=ranks_told, first=step, last=step)


def connection_echo(s: Symptoms) -> Sign:
    """Connections between processes broke as the run crashed of something else."""
    waits = hang_ranks.said(s.run)
    if not waits:
        return does_not_arise("no line speaks of processes that wait for each other.")
    final = [f for f in s.of(stall.Facts) if f.facts.at_end and f.facts.said]
    where, e = s.run.where(waits[0]["source"], waits[0]["at"]), how_it_ended.ending(s.run)
    if _echo(s):
        text = f"{len(waits)} lines speak of broken connections, as warnings, and the run crashed: {e.says[:120]}."
        return seen(text, final, where=where, first=e.step, last=e.step)
    errors = sum(x["level"] == "error" for x in waits)
    return absent(
        f"{errors} of {len(waits)} lines about processes that wait are errors, and the run ended as {e.status}.", final, where=where
    )


def _echo(s: Symptoms) -> bool:
    """What a crash leaves behind, as the detector tells it: warnings of broken connections, and another error."""
    return all(x["level"] == "warning" for x in hang_ranks.said(s.run)) and how_it_ended.status(s.run) == "crashed"


def _world(s: Symptoms) -> str:
    found = settings.setting(s.run, "world_size")
    return found.where if found else ""
