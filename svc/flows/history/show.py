"""Reads one seal with its changes, and verifies it on this machine."""

from __future__ import annotations

import msgspec

from localstore.core.errors import SvcError
from localstore.core.model.history import ChangedFile, Seal
from localstore.core.model.repo import Repo
from svc.flows.history.compare import changes_of_seal
from svc.flows.place.where import Where


class ShownSeal(msgspec.Struct, frozen=True):
    """A seal and the files that it changed. `fault` says why its verification failed; None means that it is
    verified."""

    seal: Seal
    fault: str | None
    files: list[ChangedFile]


def show(where: Where, repo: Repo, seal_id: str) -> ShownSeal:
    """Read and verify the seal with this id. Raises NotFound if there is none. If verification fails, the
    result has a `fault`."""
    seal = where.reader.history.seal(repo.id, seal_id)
    return ShownSeal(seal, fault_of(repo, seal, seal_id), changes_of_seal(where, repo, seal_id))


def fault_of(repo: Repo, seal: Seal, seal_id: str) -> str | None:
    """Return why the verification of this seal fails; None if it is verified. `seal_id` is the id that the
    seal must have."""
    from localstore.sync import verify

    try:
        payload = verify.seal(seal, seal_id, repo.id)
    except SvcError as error:
        return error.detail
    described = (seal.message, seal.parents, seal.content_digest, seal.provenance.device_key_id)
    signed = (payload.message, payload.parents, payload.content_digest, payload.provenance.device_key_id)
    return None if described == signed else "the server describes it differently from what was signed"
