"""Two players beside each other: how far apart the rates are that config gives them."""

from __future__ import annotations

from forensics.run import settings
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

SUBJECT = "other_objectives"  # a part of it
G_RATE, D_RATE = (
    f"lr_{a} {a}_lr {a}_learning_rate learning_rate_{a} lr_{b} {b}_lr {b}_learning_rate lr_{c} {c}_lr {c}_learning_rate"
    for a, b, c in (("g", "gen", "generator"), ("d", "disc", "discriminator"))
)

LONGER = 10.0  # unit: an order of magnitude


def player_rates_apart(s: Symptoms) -> Sign:
    """Config gives one of the players ten times the learning rate of the other, or more (two rates that differ by four are usual, arXiv 1706.08500)."""
    found = [next(iter(settings.named(s.run, names)), None) for names in (G_RATE, D_RATE)]
    rates = [settings.as_number(f.value) if f is not None else None for f in found]
    if found[0] is None or found[1] is None or not rates[0] or not rates[1]:
        return cannot_tell("config does not give each of two players a learning rate.")
    apart = max(rates[0] / rates[1], rates[1] / rates[0])
    text = f"Config has {found[0].key} = {rates[0]:g} and {found[1].key} = {rates[1]:g}"
    if apart < LONGER:
        return absent(f"{text}.", where=found[0].where)
    return seen(f"{text}, {apart:.3g} times apart.", where=found[0].where)
