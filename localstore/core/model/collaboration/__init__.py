"""Collaboration: issues, proposals, reviews, runs, access."""
