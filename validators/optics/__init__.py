"""Optics and the quality of links: light levels, FEC, bit errors and flaps against declared limits."""
