"""The requests that sync makes to a relay. The caller passes an implementation bound to one repository and
branch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from localstore.core.model.history import Seal, Tree
from localstore.core.model.live import (
    Bootstrap,
    BootstrapRequest,
    LanesRequest,
    LaneStates,
    UpdateAnswers,
    UpdateBatch,
)
from localstore.core.model.ref import Ref
from localstore.core.model.seal import FinalizeRequest, Prepared, PrepareRequest
from localstore.core.storage.pack import Pack


class Transport(Protocol):
    """The requests of sync to the relay, one for each method. Each raises the relay's errors
    (`localstore.core.errors`), and ServerUnreachable without an answer; the request may have taken effect
    then."""

    def bootstrap(self, request: BootstrapRequest) -> Bootstrap:
        """The frontier's rows since a sequence number, and this working copy's replica id."""

    def lanes(self, request: LanesRequest) -> LaneStates:
        """The states of these text lanes."""

    def updates(self, batch: UpdateBatch) -> UpdateAnswers:
        """Send signed updates. Returns their answers, in the same order."""

    def have(self, digests: Sequence[bytes]) -> list[bytes]:
        """The digests among `digests` (32 bytes each) whose objects the repository lacks."""

    def upload_pack(self, pack: Pack) -> None:
        """Store the objects of a pack."""

    def fetch_pack(self, digests: Sequence[bytes]) -> Iterator[bytes]:
        """A pack, in pieces, with the first of the objects, as many as fit into one answer."""

    def put_manifest(self, digest: bytes, raw: bytes) -> None:
        """Store the chunk manifest of the large file `digest`. Raises PayloadMissing if a chunk is
        missing."""

    def manifest(self, digest: bytes) -> bytes:
        """The chunk manifest of the large file `digest`, not verified."""

    def prepare(self, request: PrepareRequest) -> Prepared:
        """Prepare the next seal of the live frontier. Returns the bytes to sign."""

    def finalize(self, request: FinalizeRequest) -> Seal:
        """Make the prepared seal the head. Returns it. Raises StaleHead if another seal came first."""

    def ref(self) -> Ref:
        """The branch with id and sealed head. Raises NoBranch."""

    def head(self) -> str | None:
        """The id of the branch's newest seal; None without seals."""

    def seal(self, seal_id: str) -> Seal:
        """One seal with its signed bytes and key."""

    def tree(self, seal_id: str) -> Tree:
        """All files of a seal."""

    def proof(self, seal_id: str) -> bytes:
        """The directories of a seal that the account may see, not verified. Later requests by digest refer to
        this seal."""
