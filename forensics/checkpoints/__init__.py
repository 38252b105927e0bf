"""What checkpoints hold, what is sick in them, what changed between two, and what a run's saves tell."""
