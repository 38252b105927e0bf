"""The content of suspect batches beside ordinary ones, for somebody to read (`--show-data`). It goes onto the page and nowhere else."""
