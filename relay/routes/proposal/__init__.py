"""Routes of proposals, their merges and their threads."""
