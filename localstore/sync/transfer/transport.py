"""The requests that sync makes to a relay, as a protocol. The caller passes an implementation for one
repository and branch."""

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
    """The requests that sync makes to the relay, one for each method. Each raises the relay's errors
    (`localstore.core.errors`). ServerUnreachable is raised if there is no answer; then the request may
    still have taken effect."""

    def bootstrap(self, request: BootstrapRequest) -> Bootstrap:
        """Read the rows of the live frontier that are new since a sequence number. Also returns this working
        copy's replica id."""

    def lanes(self, request: LanesRequest) -> LaneStates:
        """Read the states of these text lanes."""

    def updates(self, batch: UpdateBatch) -> UpdateAnswers:
        """Send signed updates. Returns their answers, in the same order."""

    def have(self, digests: Sequence[bytes]) -> list[bytes]:
        """Those of `digests` (32 bytes each) whose objects the repository lacks."""

    def upload_pack(self, pack: Pack) -> None:
        """Store the objects of a pack."""

    def fetch_pack(self, digests: Sequence[bytes]) -> Iterator[bytes]:
        """The bytes of a pack with the requested objects, in pieces. If one answer cannot contain all
        objects, it has those that come first in the request."""

    def put_manifest(self, digest: bytes, raw: bytes) -> None:
        """Store the chunk manifest of the large file `digest`. Raises PayloadMissing if a chunk is
        missing."""

    def manifest(self, digest: bytes) -> bytes:
        """The chunk manifest of the large file `digest`. The caller has to verify it."""

    def prepare(self, request: PrepareRequest) -> Prepared:
        """Prepare the next seal of the live frontier. Returns the bytes to sign."""

    def finalize(self, request: FinalizeRequest) -> Seal:
        """Make the prepared seal the head of the branch, and return it. Raises StaleHead if another seal was
        made first."""

    def ref(self) -> Ref:
        """The branch, with its id and its newest seal. Raises NoBranch."""

    def head(self) -> str | None:
        """The id of the branch's newest seal; None without seals."""

    def seal(self, seal_id: str) -> Seal:
        """One seal with its signed bytes and key."""

    def tree(self, seal_id: str) -> Tree:
        """All files of a seal."""

    def proof(self, seal_id: str) -> bytes:
        """A proof of a seal's tree, which contains the directories that the account may see. The caller has
        to verify it. Objects that are requested afterwards must belong to this tree."""
