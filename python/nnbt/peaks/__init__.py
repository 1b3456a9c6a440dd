"""Published peaks, measured ceilings, published results."""
