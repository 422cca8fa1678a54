"""SQL statements on listings, publications, dependencies and advisories."""
