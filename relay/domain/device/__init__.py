"""Devices of an account: listed, revoked, and paired by a QR code."""
