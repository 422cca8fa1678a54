"""The catalog's data about a repository: listing, releases, artifacts, dependencies, advisories."""
