"""SQL statements for reading repositories with git."""
