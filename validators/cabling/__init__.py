"""Cabling: what LLDP sees compared with the plan, and the smallest set of moves that puts it right."""
