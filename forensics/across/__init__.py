"""What many runs tell together: shared batches, shared causes, seed groups, copies and forks, settings against outcomes.

Each module takes the records of an audit (forensics/audit/record.py says what they hold) and gives plain data. None
looks at files, and none at names or places to guess a cause.
"""
