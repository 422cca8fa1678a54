"""Accounts, sessions, device keys, pairing and tokens."""
