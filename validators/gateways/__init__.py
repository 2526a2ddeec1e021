"""Gateways against the plan: whether they take traffic, and the pools, forwards and timers that they really have."""
