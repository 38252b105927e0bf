"""Replay: runs the steps around the trouble again, from the last good state, and finds out by experiment what makes it.

targets (what to explain) and start_checkpoints (from where) come from the logs alone; client and worker own the process with the
model; reproduce, arms, bisect_batches and samples ask it; verdict turns outcomes into one word and clues; session is the order
of all that. Nothing here imports torch: only the worker does, in the interpreter that the user names.
"""
