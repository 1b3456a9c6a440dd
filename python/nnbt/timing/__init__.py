"""Timed runs: statistics, scatter, windows, slope."""
