"""From options to results."""
