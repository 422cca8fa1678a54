"""Devices of an account. They are listed, revoked, and paired by a QR code."""
