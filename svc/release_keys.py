"""The keys that sign the builds of svc, written here by `scripts/release.py` into the build that it makes.

A program trusts two at most: the key that signed it, and the next one, so that a build signed with the next
key is taken by programs that were built before it. Checkouts and packages trust none: they are not replaced.
"""

from __future__ import annotations

from typing import Final

KEYS: Final[tuple[str, ...]] = ()  # Ed25519 public keys in base64url
