"""The HTTP requests with which `localstore.sync` reads and changes one branch of a repository."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from localstore.core.errors import NotFound
from localstore.core.model import history, live, seal
from localstore.core.model import ref as refs
from localstore.core.model.history import Seal, Tree, TreeQuery
from localstore.core.model.live import (
    Bootstrap,
    BootstrapRequest,
    LanesRequest,
    LaneStates,
    UpdateAnswers,
    UpdateBatch,
)
from localstore.core.model.ref import NoBranch, Ref, RefQuery
from localstore.core.model.seal import FinalizeRequest, Prepared, PrepareRequest
from localstore.core.storage.pack import Pack
from svc.api import Api

BRANCHES_LISTED = 100  # among which the default branch is looked for, once a branch is missing


class BranchTransport:
    """The requests of sync for one branch, sent over HTTP. Implements
    `localstore.sync.transfer.transport.Transport`."""

    def __init__(self, api: Api, repo_id: str, branch: str) -> None:
        self._api, self._repo, self._branch = api, repo_id, branch
        self._path = {"id": repo_id, "branch": branch}
        self._at: str | None = None  # the seal that names what is read, where paths are hidden

    def bootstrap(self, request: BootstrapRequest) -> Bootstrap:
        with self._missing_branch_named():
            return self._api.send(live.BOOTSTRAP, request, **self._path)

    def lanes(self, request: LanesRequest) -> LaneStates:
        return self._api.send(live.LANES, request, **self._path)

    def updates(self, batch: UpdateBatch) -> UpdateAnswers:
        return self._api.send(live.UPDATES, batch, **self._path)

    def have(self, digests: Sequence[bytes]) -> list[bytes]:
        return self._api.payload.missing(self._repo, digests)

    def upload_pack(self, pack: Pack) -> None:
        self._api.payload.put_pack(self._repo, pack)

    def fetch_pack(self, digests: Sequence[bytes]) -> Iterator[bytes]:
        with self._api.payload.get_pack(self._repo, digests, self._at) as pieces:
            yield from pieces

    def put_manifest(self, digest: bytes, raw: bytes) -> None:
        self._api.payload.put_manifest(self._repo, digest, raw)

    def manifest(self, digest: bytes) -> bytes:
        return self._api.payload.manifest(self._repo, digest, self._at)

    def prepare(self, request: PrepareRequest) -> Prepared:
        return self._api.send(seal.PREPARE, request, **self._path)

    def finalize(self, request: FinalizeRequest) -> Seal:
        return self._api.send(seal.FINALIZE, request, **self._path)

    def ref(self) -> Ref:
        with self._missing_branch_named():
            return self._api.send(refs.GET, id=self._repo, type="branch", name=self._branch)

    def head(self) -> str | None:
        return self.ref().head

    def seal(self, seal_id: str) -> Seal:
        return self._api.history.seal(self._repo, seal_id)

    def tree(self, seal_id: str) -> Tree:
        return self._api.send(history.TREE, query=TreeQuery(recursive=True), id=self._repo, sha=seal_id)

    def proof(self, seal_id: str) -> bytes:
        self._at = seal_id
        return self._api.history.proof(self._repo, seal_id)

    @contextmanager
    def _missing_branch_named(self) -> Iterator[None]:
        """A context that replaces NotFound by NoBranch if the repository exists but the branch does not."""
        try:
            yield
        except NotFound:
            listed = self._api.items(refs.LIST, RefQuery(type="branch"), limit=BRANCHES_LISTED, id=self._repo)
            branches = list(listed)
            default = next((ref.name for ref in branches if ref.default), "main")
            if any(ref.name == self._branch for ref in branches):
                raise
            raise NoBranch(self._branch, default) from None


class SealTransport(BranchTransport):
    """The requests of sync for a read-only folder that shows one seal instead of a branch."""

    def __init__(self, api: Api, repo_id: str, branch: str, seal: str) -> None:
        super().__init__(api, repo_id, branch)
        self._looked_at = seal

    def ref(self) -> Ref:
        return Ref(id="", type="tag", name=self._looked_at, head=self._looked_at)
