"""A case in, a page out. Each output is one module with `render(case) -> str`: html, markdown, terminal.

The case is the plain dict of case.json; nothing here reads a run, and the same case gives the same bytes.
"""
