"""The public keys that verify new builds of svc before an upgrade. `scripts/release.py` writes them into the
builds that it makes.

A build trusts at most two keys: the one that signed it, and the next one. So a build that is signed with the
next key is still accepted by older programs. In a checkout or an installed package the list is empty, because
`svc upgrade` does not upgrade them."""

from __future__ import annotations

from typing import Final

KEYS: Final[tuple[str, ...]] = ()  # Ed25519 public keys in base64url
