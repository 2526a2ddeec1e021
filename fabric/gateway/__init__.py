"""Gateways: exposures and their rules, NAT arithmetic, conntrack timers, and what each gateway serves."""
