"""Statements on collaboration: issues, proposals, reviews, runs."""
