"""What the optimizer remembers of each parameter: where that is exactly zero after many updates, no gradient ever came."""

from __future__ import annotations

from collections import defaultdict

from forensics.checkpoints import run_saves
from forensics.checkpoints.age import counters
from forensics.checkpoints.looks import TABLES, Measured, is_matrix, moments_of
from forensics.checkpoints.weights import SETTLED
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

SUBJECT = "saved_weights"  # a part of it

MOST = 0.5  # bound: of the matrices; a head that is not in use, or experts that no token came to, are fewer


def moments_zero_throughout(s: Symptoms) -> Sign:
    """In the last checkpoint with an optimizer its moments are exactly zero for most of the matrices and not for all parameters: to these no gradient
    ever came, since units before or behind them are dead, or the graph is cut."""
    for c in reversed(run_saves.tensors(s.run)):
        n, kept = counters(c), [m for m in moments_of(c) if not TABLES.search(m[0].name)]
        if not kept or (n.age is not None and n.age < SETTLED):
            continue
        groups: defaultdict[object, list[Measured]] = defaultdict(list)
        for t, stats in kept:  # moments of one parameter are of one shape, an accumulator that was emptied beside them
            groups[t.shape].append((t, stats))
        matrices = {shape: of for shape, of in groups.items() if is_matrix(of[0][0])}
        empty = [of for of in matrices.values() if all(x.zeros == x.count for _, x in of)]
        if not matrices or all(x.zeros == x.count for _, x in kept):
            continue
        place = run_saves.name(c, s.run)
        text = f"In {place} the moments of {len(empty)} of {len(matrices)} shapes of matrices are exactly zero"
        if len(empty) > MOST * len(matrices):
            text += f", {empty[0][0][0].name} first, and others are not: no gradient ever came to what they belong to"
            return seen(f"{text}.", where=place)
        return absent(f"{text}.", where=place)
    return cannot_tell("no checkpoint in the folder holds the moments of an optimizer after its first updates.")
