"""API keys of an account: made, listed, rotated, revoked, and checked by the programs that accept them."""
