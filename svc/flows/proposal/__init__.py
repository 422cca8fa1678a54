"""Finds, merges and compares proposals."""
