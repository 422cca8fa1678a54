"""Finding, merging and comparing proposals."""
