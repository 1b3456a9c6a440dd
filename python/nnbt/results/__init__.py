"""Results, files and columns."""
