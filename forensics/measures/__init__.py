"""What several detectors and causes ask of a run: ranks beside each other, kinds of hangs and of out of memory, goodput, recipe, hardware."""
