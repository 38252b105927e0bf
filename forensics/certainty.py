"""Causes in sentences: doubt in words, on one scale for the headline and the list of causes, and titles in lower case."""

from __future__ import annotations

SCALE = (  # least probability, as an adjective, within a sentence; below the last the first cause is open
    (0.95, "almost certain", "almost certainly"),
    (0.8, "likely", "likely"),
    (0.55, "more likely than not", "more likely than not"),
)
OPEN = "open"
UNNAMED = "the reason was not logged"  # ends the title of a cause that is named by its symptom, where its kind was not seen


def certainty(probability: float, first: bool, *, adverb: bool = False) -> str:
    """Doubt as a word, as one would say it aloud; the first cause is open where it does not lead clearly."""
    for least, *words in SCALE:
        if probability >= least:
            return words[adverb]
    if first:
        return OPEN
    p = probability
    return "possible" if p >= 0.2 else "unlikely" if p >= 0.05 else "very unlikely" if p >= 0.01 else "close to ruled out"


def of_cause(title: str, probability: float, first: bool) -> str:
    """The certainty of a cause; the first is open, too, where its title does no more than say the symptom again."""
    return OPEN if first and title.endswith(UNNAMED) else certainty(probability, first)


def within(title: str) -> str:
    """A title inside a sentence: lower case, but not where it begins with an abbreviation (NaN, GPU)."""
    return title if any(c.isupper() for c in title.split()[0][1:]) else title[:1].lower() + title[1:]
