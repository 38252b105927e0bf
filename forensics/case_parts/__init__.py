"""The parts of a case that are put together from all others: headline, summary, timeline, notes."""
