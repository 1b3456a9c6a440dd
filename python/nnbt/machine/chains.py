"""Names of peak chains (engine `native`) that have a role of their own."""

CLOCK_CHAIN = "dependent_add"
"""Measures the core clock: each addition waits for the one before it. It is no peak."""
