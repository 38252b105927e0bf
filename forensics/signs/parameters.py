"""How much of the model trains, as the log says."""

from __future__ import annotations

from forensics.run.parameter_counts import counts
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

# Of all parameters: adapters of LoRA train 0.01 to 4 % (arXiv 2106.09685, tables 2 to 4), a new head on a frozen body less than 1 %
FEW = 0.05


def few_parameters_train(s: Symptoms) -> Sign:
    """The log says that no parameter trains, or that less than a twentieth of them do."""
    found = counts(s.run)
    if found is None:
        return cannot_tell("the log does not say how many parameters train.")
    if found.training == 0:
        return seen("The log says that no parameter trains.", where=found.where)
    if found.share is None:
        return cannot_tell("the log does not say how many parameters there are.")
    text = f"The log says that {found.training:,.0f} of {found.all:,.0f} parameters train ({found.share:.2g} of them)."
    return seen(text, where=found.where) if found.share < FEW else absent(text, where=found.where)
