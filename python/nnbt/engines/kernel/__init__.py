"""Engine `kernel`."""
