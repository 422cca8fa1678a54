"""What lists of issues cost, and what watchers cost a comment."""
