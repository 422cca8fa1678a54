"""Sealing a branch: prepare fixes the bytes, finalize takes the signature."""
