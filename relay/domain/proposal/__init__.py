"""Proposals: their rows, versions, branches, reviews, and what keeps one from being merged."""
