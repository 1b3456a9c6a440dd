"""Engine `native`."""
