"""The half of replay that runs in the training environment: torch and the standard library only, Python 3.9 or newer.

`worker.py` loads this folder by its path under a name of its own, so nothing of forensics has to be importable there.
"""
