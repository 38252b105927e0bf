"""Which files are one run, which rows are one attempt, what is a copy of what; then the tables of the run."""
