"""Converts the row of a seal to the form in which answers contain it."""

from __future__ import annotations

from localstore.core import seal as seals
from localstore.core.encoding import b64u
from localstore.core.model import history as shapes
from relay.base.actors import to_actor
from relay.base.clock import rfc3339, rfc3339_or_none
from relay.db.seal import SealRow


def to_wire(row: SealRow, repo_id: str | None = None) -> shapes.Seal:
    """Convert a seal to the form that answers have. It includes the device key and the registration of the
    key, with which readers verify the seal. Fields of the payload are read from the payload itself.
    `repo_id`: the repository whose route answers; None means the repository where the seal was made."""
    payload = seals.decode(row.payload)
    git, merge = payload.provenance.git, payload.provenance.merge
    sources = merge.sources if merge is not None and merge.strategy in seals.LISTED else []
    return shapes.Seal(
        id=row.id,
        sha=row.id,
        branch=row.branch,
        parents=payload.parents,
        content_digest=payload.content_digest,
        message=row.message,
        provenance=shapes.SealProvenance(
            who=to_actor(row.account_id, row.handle, row.account_kind),
            device_key_id=row.device_key_id,
            capability=payload.provenance.capability,
            author=payload.provenance.author,
            git_id=git.id if git else None,
            merged=[source for source in sources if source not in payload.parents],
        ),
        created_at=rfc3339(row.created_at),
        signature=shapes.SealSignature(alg="ed25519", key_id=row.device_key_id, value=b64u(row.signature)),
        payload=b64u(row.payload),
        key=shapes.SealKey(
            id=row.device_key_id,
            public_key=b64u(row.key_ed25519),
            account=row.account_id,
            registered_at=rfc3339(row.key_created_at),
            revoked_at=rfc3339_or_none(row.key_revoked_at),
            registration=b64u(row.key_registration),
        ),
        verified=None,
        origin=None if repo_id in (None, payload.repo_id) else payload.repo_id,
    )
