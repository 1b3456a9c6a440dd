"""Facts about this machine and its devices."""
