"""The keys that sign the builds of svc. `scripts/release.py` writes them into the builds that it makes.

A program trusts at most two keys: the one that signed it, and the next one, so that older programs accept a
build signed with the next key. Checkouts and packages trust none; they are not replaced.
"""

from __future__ import annotations

from typing import Final

KEYS: Final[tuple[str, ...]] = ()  # Ed25519 public keys in base64url
