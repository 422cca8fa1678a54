"""Signs releases, and verifies their signatures."""

from __future__ import annotations

from collections.abc import Sequence

from localstore.core import publication
from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import Conflict, Invalid, ServerMisbehaved
from localstore.core.identity import keys
from localstore.core.identity.keys import DeviceKey
from localstore.core.model import publication as endpoints
from localstore.core.model.publication import PublicationCreate
from localstore.core.model.release import Release
from localstore.core.paths import terminal_safe
from svc.api import Api
from svc.flows.assets.local import LocalFile


def sign(
    api: Api, repo_id: str, release: Release, key: DeviceKey, files: Sequence[LocalFile] | None
) -> Release:
    """Sign the release with this machine's key, and return it with the signature. `files` are the assets that
    the release must have, or None if any are accepted. If the server has other assets, raises Conflict and
    signs nothing."""
    by_name = {asset.name: (asset.blake3, asset.size) for asset in release.assets}
    if files is not None and by_name != {file.name: (file.digest.hex(), file.size) for file in files}:
        raise Conflict(
            f"release {release.version} does not have these files and no others; see: svc repo release view"
        )
    signature = b64u(key.sign(_payload(repo_id, release)))
    body = PublicationCreate(version=release.version, device_key_id=key.id, signature=signature)
    signed_release = api.send(endpoints.CREATE, body, id=repo_id)
    if (fault := fault_of(repo_id, signed_release)) is not None or not signed_release.publication.signed:
        raise ServerMisbehaved(fault or "the server did not keep the signature")
    return signed_release


def fault_of(repo_id: str, release: Release) -> str | None:
    """Return a sentence if the signature of the release does not match its version, seal and files. None if
    it matches, or if the release is unsigned."""
    publication = release.publication
    if not publication.signed:
        return None
    try:
        public = unb64u(publication.public_key or "", keys.KEY_BYTES)
        signature = unb64u(publication.signature or "", keys.SIGNATURE_BYTES)
    except Invalid:
        public, signature = b"", b""
    good = keys.verify(public, _payload(repo_id, release), signature)
    if good and keys.key_id(public) == publication.key_id:
        return None
    return f"the signature of release {terminal_safe(release.version)} does not verify"


def _payload(repo_id: str, release: Release) -> bytes:
    assets = [(asset.name, asset.blake3, asset.size) for asset in release.assets]
    return publication.payload(repo_id, release.version, release.seal_id, assets)
