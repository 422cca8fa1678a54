"""Merges of sealed trees: computed when they are prepared, landed when they are signed."""
