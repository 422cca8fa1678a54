"""One seal, verified on this machine, and its changes."""

from __future__ import annotations

import msgspec

from localstore.core.errors import SvcError
from localstore.core.model.history import ChangedFile, Seal
from localstore.core.model.repo import Repo
from svc.flows.history.compare import changes_of_seal
from svc.flows.place.where import Where


class ShownSeal(msgspec.Struct, frozen=True):
    """A seal and its changes. `fault`: the reason why the seal does not verify; None if it does."""

    seal: Seal
    fault: str | None
    files: list[ChangedFile]


def show(where: Where, repo: Repo, seal_id: str) -> ShownSeal:
    """The seal with this id. Raises NotFound if there is none; a seal that fails verification has a
    `fault`."""
    seal = where.reader.history.seal(repo.id, seal_id)
    return ShownSeal(seal, fault_of(repo, seal, seal_id), changes_of_seal(where, repo, seal_id))


def fault_of(repo: Repo, seal: Seal, seal_id: str) -> str | None:
    """The reason why the seal, whose id should be `seal_id`, does not verify; None if it does."""
    from localstore.sync import verify

    try:
        payload = verify.seal(seal, seal_id, repo.id)
    except SvcError as error:
        return error.detail
    described = (seal.message, seal.parents, seal.content_digest, seal.provenance.device_key_id)
    signed = (payload.message, payload.parents, payload.content_digest, payload.provenance.device_key_id)
    return None if described == signed else "the server describes it differently from what was signed"
