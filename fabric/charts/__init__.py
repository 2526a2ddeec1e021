"""Plots and pages of answers: SVG and HTML that need nothing from elsewhere."""
