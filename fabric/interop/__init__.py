"""The plan in other tools' words, and their files in ours: cable maps, wiring, pictures, imports, comparisons."""
