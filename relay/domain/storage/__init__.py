"""Objects of repositories by digest: single, in packs, in chunks; and the collector of unreferenced ones."""
