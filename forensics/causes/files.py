"""The causes as data: one file each in this folder. CONTRIBUTING.md lists the keys."""

from __future__ import annotations

import tomllib
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from forensics.certainty import OPEN, SCALE
from forensics.signs.sign import SEEN, Sign

UNKNOWN, NOTHING = "unknown", "nothing"  # no cause on our list; nothing is wrong


class Effect(NamedTuple):
    """Signs that must all be seen, and signs of which none may be: they show that the cause could not have made the others."""

    signs: tuple[str, ...]
    unless: tuple[str, ...] = ()

    def among(self, seen: Container[str]) -> bool:
        """Whether it is there, given the names of the signs that were seen."""
        return all(n in seen for n in self.signs) and not any(n in seen for n in self.unless)


@dataclass(frozen=True)
class Cause:
    """What one file says.

    `explains`: the effects that the cause is there to explain; without one of them the cause is not weighed. In a file an effect is a
    sign, or several joined by " + ", and may end in " unless " with signs joined in the same way. `for_` and `against`: the signs it
    is weighed by. `warns`: effects, too, that are a warning though no detector finds one: what a setting says first, then what the curve
    shows beside it. `settle` and `interventions` may name numbers of signs in braces; a sentence whose numbers were not measured is left out.
    """

    id: str
    title: str
    about: str
    folklore: str = ""
    settle: tuple[str, ...] = ()
    interventions: tuple[str, ...] = ()
    explains: tuple[Effect, ...] = ()
    warns: tuple[Effect, ...] = ()
    for_: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    beside: dict[str, float] = field(default_factory=dict)  # decibans of signs that need a baseline run
    needs: tuple[str, ...] = ()  # blind spots that it would speak from
    expects: dict[str, str] = field(default_factory=dict)  # outcome by experiment
    arms: tuple[str, ...] = ()  # of a replay
    outcomes: dict[str, float] = field(default_factory=dict)  # decibans by outcome of a replay
    blames: str = ""  # the batches it accuses: up to the "peak" of a spike, a whole "stretch", or of the "first" value that is not finite
    names_symptom: bool = False  # its title is the symptom, and the cause is the kind of it that signs name
    wide_group: bool = False  # what an audit calls runs of one recipe whose seeds end far apart
    no_rerun: str = ""  # why another run would not help
    said_by: tuple[str, ...] = ()  # signs by which the log itself names this cause of the ending

    @property
    def signs(self) -> tuple[str, ...]:
        return (*self.for_, *self.against)

    def effects(self, signs: dict[str, Sign]) -> list[str]:
        """The signs of the effects that were seen and that this cause explains."""
        there = {n for e in self.explains for n in (*e.signs, *e.unless) if n in signs and signs[n].state == SEEN}
        return list(dict.fromkeys(n for effect in self.explains if effect.among(there) for n in effect.signs))


@cache
def causes() -> dict[str, Cause]:
    """Every cause by id."""
    folder = resources.files("forensics.causes")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    return {c.id: c for c in (_cause(f.name.removesuffix(".toml"), tomllib.loads(f.read_text("utf-8"))) for f in files)}


def _cause(id: str, said: dict[str, Any]) -> Cause:
    lists: dict[str, Any] = {key: tuple(value) for key, value in said.items() if isinstance(value, list)}
    lists["for_"] = lists.pop("for", ())
    lists["warns"] = tuple(_effect(told) for told in lists.get("warns", ()))
    lists["explains"] = (*(_effect(told) for told in lists.get("explains", ())), *lists["warns"])
    if isinstance(said.get("settle"), str):
        lists["settle"] = (said["settle"],)
    expects = dict(pair.split(":") for pair in said.get("expects", "").split())
    return Cause(**{k: v for k, v in said.items() if k != "for"} | lists | {"id": id, "expects": expects})


def _effect(told: str) -> Effect:
    signs, _, unless = told.partition(" unless ")
    return Effect(tuple(signs.split(" + ")), tuple(unless.split(" + ")) if unless else ())


def named_cause(row: Mapping[str, Any]) -> str | None:
    """The first cause of an audit's row where it leads clearly enough to be counted; else UNKNOWN, as its page calls it open. None where nothing is
    to be explained."""
    cause, said = row["top_cause"], row.get("certainty")  # an earlier version did not keep the word
    is_open = said == OPEN if said else (row.get("probability") or 0.0) < SCALE[-1][0]
    return UNKNOWN if cause is not None and is_open else cause


def asked_by(cause: str) -> tuple[str, ...]:
    """The arms of a replay that a cause asks for."""
    return causes()[cause].arms if cause in causes() else ()


def outcome_weights(*outcomes: str) -> dict[str, float]:
    """Decibans by cause of what an experiment showed: of several words for it, the one that a cause weighs highest."""
    told = {c.id: [weight for o, weight in c.outcomes.items() if o in outcomes] for c in causes().values()}
    return {cause: max(weights) for cause, weights in told.items() if weights}
