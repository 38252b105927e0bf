"""What `.wandb` logs and the files beside them need beyond one file: records, key-value items, step meaning, settings."""
