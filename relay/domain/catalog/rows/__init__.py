"""SQL statements on listings, dependencies and advisories."""
