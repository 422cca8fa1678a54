"""Issues: the list, one issue, and the parts that proposals share with issues."""
