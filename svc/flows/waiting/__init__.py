"""Waits for events of a repository."""
