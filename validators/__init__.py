"""Validators: measure a live lab or site and say whether it is what the design promised."""
