"""Rules of signed publications. A writer signs a release with its assets. When an asset is added, replaced or
removed, the signature is deleted.
"""

from __future__ import annotations

from localstore.core import publication
from localstore.core.encoding import unb64u
from localstore.core.errors import SignatureInvalid
from localstore.core.identity import keys
from localstore.core.model.publication import NothingPublished, PublicationCreate
from localstore.core.model.release import Release
from relay.base.clock import now_ms
from relay.caller import View
from relay.domain.release import release as releases
from relay.domain.release.rows import publication as rows
from relay.domain.sealing.seal import signing_key


async def create(view: View, body: PublicationCreate) -> Release:
    """Sign the assets of a release

    Returns the release with its signature, which replaces an older one. Raises SignatureInvalid if the
    caller's key did not sign the current assets.
    """
    async with view.write() as tx:
        key = await signing_key(tx, view, body.device_key_id)
        release_id, release = await releases.find_with_assets(tx, view, body.version)
        if not release.assets:
            raise NothingPublished(
                f"release {release.version} has no files; "
                f"run: svc repo release upload {release.version} FILES"
            )
        assets = [(asset.name, asset.blake3, asset.size) for asset in release.assets]
        raw = publication.payload(view.repo.id, release.version, release.seal_id, assets)
        signature = unb64u(body.signature, keys.SIGNATURE_BYTES)
        if not keys.verify(key.ed25519, raw, signature):
            raise SignatureInvalid(
                f"this is not a signature of release {release.version} with the files it has; sign it again"
            )
        await tx.run(rows.DROP, of_release=release_id)
        await tx.run(
            rows.INSERT,
            release_id=release_id,
            repo_id=view.repo.id,
            signature=signature,
            device_key_id=key.id,
            created_at=now_ms(),
        )
        await view.node.hub.announce(tx, view.repo.id, "publication.create", version=release.version)
        return (await releases.find_with_assets(tx, view, body.version))[1]
