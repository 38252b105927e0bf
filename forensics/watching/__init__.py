"""A run that is still going: what is new in its files, when a whole look is worth its cost, and who is told."""
