"""Confining a process: one module per backend, each behind the small interface of ``base``."""
