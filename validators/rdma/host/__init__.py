"""What runs on a probe host. Standard library only (numpy is used where it is there), nothing else of this project.

The folder is shipped as a zip on standard input (`validators.agents`), so nothing has to be installed by hand.
"""
