"""Parts that turn a plan into an observation: the only seam to the world."""
