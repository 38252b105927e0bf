"""A static look at the source that lies beside a log: parsed, never imported, never run."""
