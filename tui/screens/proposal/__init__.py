"""Proposals: one of them, and what it changes."""
