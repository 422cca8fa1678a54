"""Machines at compute providers. No provider is built in: every launch is refused, with what is missing."""
