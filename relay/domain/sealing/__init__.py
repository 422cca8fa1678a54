"""Sealing a branch. `prepare` computes the bytes to sign, and `finalize` receives their signature."""
