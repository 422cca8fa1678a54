"""Sealing a branch: `prepare` computes the bytes to sign, `finalize` receives their signature."""
