"""One module per verb; each exposes `command`, a click command or group. Being here registers it."""
