"""Answers from the plan and the rendered files alone: rules, flows, failures, capacity and paths."""
