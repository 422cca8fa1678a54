"""Issues: their list, the screen of one issue, and what proposals share with issues."""
