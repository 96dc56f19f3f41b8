"""Recordings of runs: the text archive, its steps, matching, normalising, comparing. Pure: bytes in, bytes out."""
