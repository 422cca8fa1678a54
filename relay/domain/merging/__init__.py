"""Merges of sealed trees: computed when they are prepared, landed (made the head of their branch) when they
are signed."""
