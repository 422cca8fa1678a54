"""Objects of repositories by digest: single, in packs, in chunks; what collects them."""
