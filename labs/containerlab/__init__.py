"""Engine and export format `containerlab`: every node is a container, deployed from a topology file.

The engine deploys the exported folder by the real containerlab on a real Docker engine: this host's where it has both,
otherwise inside the embedded VM, whose kernel can do all that Docker asks for.
"""
