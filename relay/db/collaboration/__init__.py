"""Statements on what people do together: issues, proposals, reviews, runs."""
