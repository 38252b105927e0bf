"""What checkpoints hold, what is broken in them, what changed between two, and what a run's saves tell."""
