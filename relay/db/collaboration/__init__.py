"""SQL statements on collaboration: issues, proposals, reviews, runs."""
