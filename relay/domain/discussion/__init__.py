"""Issues, labels, and what issues and proposals share: numbers, comments, reactions, timelines."""
