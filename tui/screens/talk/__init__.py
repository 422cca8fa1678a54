"""Issues: the list, one issue, and what proposals share with it."""
