"""Signing in, and the device key that signs."""
