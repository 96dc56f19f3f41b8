"""Carries what a shell keeps from one command of a session to the next, without a process that lives in between."""
