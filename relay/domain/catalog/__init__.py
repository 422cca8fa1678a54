"""Rules of listings, publications, dependencies and advisories."""
