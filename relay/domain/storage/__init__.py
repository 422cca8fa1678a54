"""Objects of repositories by digest: single, in packs, in chunks; and the collector, which deletes objects
that nothing refers to.
"""
