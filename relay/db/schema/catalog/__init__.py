"""Tables of listings, publications, dependencies and advisories."""
