"""Evidence to verdict: `judge` applies the CHECKS table."""
