"""What sync needs of a relay. The caller hands in an implementation bound to one repository and branch."""

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
    """Every method is one request. Errors are the relay's own (`localstore.core.errors`), ServerUnreachable
    when nobody answers; a lost answer leaves open whether the request took effect."""

    def bootstrap(self, request: BootstrapRequest) -> Bootstrap:
        """The frontier since a sequence number, and this folder's replica id."""

    def lanes(self, request: LanesRequest) -> LaneStates:
        """States of text lanes."""

    def updates(self, batch: UpdateBatch) -> UpdateAnswers:
        """Send signed updates; answers in their order."""

    def have(self, digests: Sequence[bytes]) -> list[bytes]:
        """Those of `digests` (32 bytes each) that the repository lacks."""

    def upload_pack(self, pack: Pack) -> None:
        """Store the objects of a pack."""

    def fetch_pack(self, digests: Sequence[bytes]) -> Iterator[bytes]:
        """A pack, in pieces, of those of the objects that the caller may read."""

    def put_manifest(self, digest: bytes, raw: bytes) -> None:
        """Say which stored chunks make the large file `digest` (`localstore.core.storage.chunks`).
        PayloadMissing if the repository lacks one."""

    def manifest(self, digest: bytes) -> bytes:
        """The manifest of the large file `digest`, not verified."""

    def prepare(self, request: PrepareRequest) -> Prepared:
        """Fix the frontier as the next seal."""

    def finalize(self, request: FinalizeRequest) -> Seal:
        """Make the prepared seal the head. StaleHead if another one was faster."""

    def ref(self) -> Ref:
        """The branch: its id, its sealed head. NoBranch if there is none of this name."""

    def head(self) -> str | None:
        """The branch's sealed head."""

    def seal(self, seal_id: str) -> Seal:
        """One seal with its signed bytes and key."""

    def tree(self, seal_id: str) -> Tree:
        """All files of a seal."""
