"""One file per question of `kvfabric kv`; a new question is a new file that exposes `command`."""
