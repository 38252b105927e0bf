"""What text logs need beyond one file: grammars of lines, blocks, events, printed settings, the memory of a log while it is read."""
