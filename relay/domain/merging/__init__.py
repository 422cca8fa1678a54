"""Merges of sealed trees: worked out when they are prepared, landed when they are signed."""
