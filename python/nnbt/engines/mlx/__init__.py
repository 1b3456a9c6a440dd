"""Engine `mlx`."""
