"""The relay as `localstore.sync` sees it: one repository, one branch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from localstore.core.errors import NotFound
from localstore.core.model import (
    Bootstrap,
    LaneStates,
    Prepared,
    Seal,
    Tree,
    UpdateAnswers,
    UpdateBatch,
)
from localstore.core.model.live import BootstrapRequest, LanesRequest
from localstore.core.model.seal import FinalizeRequest, PrepareRequest
from localstore.core.pack import Pack
from svc.api import Api


class BranchTransport:
    """Implements `localstore.sync.transport.Transport` over HTTP."""

    def __init__(self, api: Api, repo_id: str, branch: str) -> None:
        self._api, self._repo, self._branch = api, repo_id, branch

    def bootstrap(self, request: BootstrapRequest) -> Bootstrap:
        return self._api.live.bootstrap(self._repo, self._branch, request)

    def lanes(self, request: LanesRequest) -> LaneStates:
        return self._api.live.lanes(self._repo, self._branch, request)

    def updates(self, batch: UpdateBatch) -> UpdateAnswers:
        return self._api.live.updates(self._repo, self._branch, batch)

    def have(self, digests: Sequence[bytes]) -> list[bytes]:
        return self._api.payload.missing(self._repo, digests)

    def upload_pack(self, pack: Pack) -> None:
        self._api.payload.put_pack(self._repo, pack)

    def fetch_pack(self, digests: Sequence[bytes]) -> Iterator[bytes]:
        with self._api.payload.get_pack(self._repo, digests) as pieces:
            yield from pieces

    def put_manifest(self, digest: bytes, raw: bytes) -> None:
        self._api.payload.put_manifest(self._repo, digest, raw)

    def manifest(self, digest: bytes) -> bytes:
        return self._api.payload.manifest(self._repo, digest)

    def prepare(self, request: PrepareRequest) -> Prepared:
        return self._api.seal.prepare(self._repo, self._branch, request)

    def finalize(self, request: FinalizeRequest) -> Seal:
        return self._api.seal.finalize(self._repo, self._branch, request)

    def head(self) -> str | None:
        try:
            return self._api.ref.get(self._repo, "branch", self._branch).head
        except NotFound:
            raise NotFound(f"there is no branch {self._branch}; see: svc repo branch") from None

    def seal(self, seal_id: str) -> Seal:
        return self._api.history.seal(self._repo, seal_id)

    def tree(self, seal_id: str) -> Tree:
        return self._api.history.tree(self._repo, seal_id, recursive=True)
