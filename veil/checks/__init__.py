"""Parts that judge: one post-condition a file. Pure."""
