"""Parts that keep records."""
