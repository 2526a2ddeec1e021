"""PFC, ECN, drop and RDMA counters of switches and hosts: parsed, joined to the plan, compared before and after.

A counter that should exist and does not is an error, never 0: see `readings.Readings.delta`.
"""
