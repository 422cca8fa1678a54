"""Issues: their list, the screen of one issue, and what issues share with proposals."""
