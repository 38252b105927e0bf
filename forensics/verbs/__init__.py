"""The verbs of the command line, one a file: each reads its arguments, calls one function, and prints a few lines."""
