"""Routes of listings, publications, dependencies, advisories and builds of the client."""
