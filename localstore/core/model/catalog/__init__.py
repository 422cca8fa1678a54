"""What the catalog shows of a repository: listing, releases, artifacts, dependencies, advisories."""
