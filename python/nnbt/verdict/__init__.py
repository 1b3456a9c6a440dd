"""Evidence -> verdict: the CHECKS table."""
