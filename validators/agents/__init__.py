"""How a probe gets onto a host: a Python program as a zip on standard input, its request behind it, its row back.

Nothing is installed and nothing is left: the far interpreter keeps the zip in anonymous memory and imports from there.
An agent is anything with `run`: a lab node, an SSH host, a network namespace of this machine, this machine itself. An
engine for a thousand hosts is one more class here.
"""
