"""Signed publications: the bytes that a device key signs for a release and its assets.

    payload(repo_id, "v1.0.0", seal_id, [("app.zip", digest, 1024)])

The first line names the kind of publication; the rest is canonical JSON with the assets sorted by name.
"""

from __future__ import annotations

from collections.abc import Iterable

from localstore.core.encoding import jcs

DOMAIN = b"svc-publication-v1\n"


def payload(repo_id: str, version: str, seal_id: str, assets: Iterable[tuple[str, str, int]]) -> bytes:
    """The bytes to sign for a release of this seal. `assets`: (name, BLAKE3 in hex, size in bytes) of each
    file."""
    listed = [{"name": name, "blake3": digest, "size": size} for name, digest, size in sorted(assets)]
    return DOMAIN + jcs({"repo_id": repo_id, "version": version, "seal_id": seal_id, "assets": listed})
