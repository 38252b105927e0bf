"""What anyone may ask of a run: series, settings, attempts and endings, ranks, recipe, goodput, identity."""
