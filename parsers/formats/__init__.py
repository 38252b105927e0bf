"""The formats that we read, one a file: each has ``claims`` and ``parse`` (parsers.tables says what these two do)."""
