"""Runs beside each other: two of them (where they part, which settings differ, a known good one as baseline), and many
(shared batches and causes, seed groups, copies and forks).

What compares many takes the records of an audit (forensics/audits/row.py says what they hold) and gives plain data. None
looks at files, and none at names or places to guess a cause.
"""
