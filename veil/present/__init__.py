"""Parts that make data fit a context window, a terminal or a JSON reply. Pure."""
