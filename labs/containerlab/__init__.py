"""Engine and export format `containerlab`: every node is a container, deployed from a topology file."""
