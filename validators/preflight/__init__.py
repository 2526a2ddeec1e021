"""Preflight: whether the question can be asked at all."""
