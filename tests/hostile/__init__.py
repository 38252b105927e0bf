"""Hostile, damaged and odd input: a corpus of cases, the runner that holds them to docs/promises.md, and fuzzers."""
