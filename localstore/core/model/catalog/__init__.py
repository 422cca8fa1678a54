"""What a repository shows of itself to the catalog, and what it stands on."""
