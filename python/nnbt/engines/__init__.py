"""One package an engine, independent of one another."""
