"""Issues, labels, and everything that issues and proposals share: numbers, comments, reactions, timelines."""
