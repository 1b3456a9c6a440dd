"""Timed windows: statistics, slope, memory."""
