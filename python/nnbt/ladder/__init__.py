"""`nnbt ladder`: the rates between the published peak and MLX, and the causes of large losses."""
