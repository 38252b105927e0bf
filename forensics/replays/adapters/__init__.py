"""Adapters of ours, by name: `forensics replay RUN --adapter hf`. They run in the training environment, like a user's own."""
