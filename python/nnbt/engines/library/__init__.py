"""Engine `library`."""
