"""Engine `mpsgraph`."""
