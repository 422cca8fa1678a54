"""Sealed history: seals, trees, files, blame, comparison."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.lane.update import LiveUpdate, UpdateKind
from localstore.core.model.base import Actor, Count, Model, Page, PageQuery
from localstore.core.model.limits import COMPARE_FILES, HISTORY_PACK_MAX, LARGE_ANSWER


class SealKey(Model, frozen=True):
    """The device key of a seal, for verification. `registration`: the self-signed statement."""

    id: str
    public_key: str
    account: str
    registered_at: str
    revoked_at: str | None
    registration: str


class SealSignature(Model, frozen=True):
    alg: Literal["ed25519"]
    key_id: str
    value: str


class SealProvenance(Model, omit_defaults=True, frozen=True):
    """Who made the seal, on which device, with which capability. `author` and `git_id`: author and id of an
    imported commit. `merged`: seals that count as its ancestors, besides its parents."""

    who: Actor
    device_key_id: str
    capability: str
    author: str | None = None
    git_id: str | None = None
    merged: list[str] = msgspec.field(default_factory=list)


class SealSummary(Model, frozen=True):
    """A seal without its signature. `sha` equals `id`."""

    id: str
    sha: str
    branch: str
    parents: list[str]
    content_digest: str
    message: str
    provenance: SealProvenance
    created_at: str

    @property
    def merged(self) -> list[str]:
        """The ancestors besides the first parent: other parents and merged seals; [] unless it is a merge."""
        return [*self.parents[1:], *self.provenance.merged]


class Seal(SealSummary, frozen=True):
    """A seal. `payload`: the signed bytes (b64u). `verified`: result of the relay's own check; clients verify
    it themselves. `origin`: id of the repository where it was sealed, if that is another one: the parent of a
    fork, or the fork of a proposal."""

    signature: SealSignature
    payload: str
    key: SealKey
    verified: bool | None = None
    origin: str | None = None


class SealUpdate(Model, omit_defaults=True, frozen=True):
    """One live update in a seal, number `seq` of its branch. `update`, for an edit: everything that its
    device signed (see localstore.core.lane.update), together with this `branch_id`, `replica` and
    `device_key_id`."""

    seq: Count
    at: str
    who: Actor
    device_key_id: str
    branch_id: str
    replica: Count
    path: str
    kind: UpdateKind
    update: LiveUpdate | None = None


class PathUpdates(Model, frozen=True):
    """The number of `updates` of one path by one person on one device in a seal, and their times."""

    path: str
    who: Actor
    device_key_id: str
    updates: Count
    first_at: str
    last_at: str


class SealLine(Model, frozen=True):
    """An item of the log with `unverified=1`."""

    id: str
    message: str


PublicSeal = SealSummary


class TreeFile(Model, frozen=True):
    """One file of a tree."""

    path: str
    kind: Literal["text", "blob", "chunked", "dir"]
    blake3: str
    size: Count


class Tree(Model, frozen=True):
    """The files of a seal's tree below `path`. `tree_key` (b64u): for computing `content_digest`; only in
    whole views. `filtered`: paths are hidden."""

    sha: str
    content_digest: str
    path: str
    recursive: bool
    filtered: bool
    entries: list[TreeFile]
    tree_key: str | None = None
    tree_key_id: str | None = None


class Blob(Model, frozen=True):
    """A file with its content. `content`: None if it exceeds the inline limit (`truncated`)."""

    path: str
    kind: Literal["text", "blob", "chunked"]
    blake3: str
    size: Count
    encoding: Literal["utf-8", "base64"]
    content: str | None
    truncated: bool


class BlameRange(Model, frozen=True):
    """Lines `start`..`end`, 1-based, inclusive, last changed by `seal_id`."""

    start: Count
    end: Count
    seal_id: str
    who: Actor
    device_key_id: str
    sealed_at: str
    message: str


class Blame(Model, frozen=True):
    path: str
    seal_id: str
    lines: Count
    ranges: list[BlameRange]


class ChangedFile(Model, frozen=True):
    """A changed file of a comparison. `patch`: unified diff of a text file; None for binary files and files
    over the diff limit. `old_path`, `similarity` (percent): of a moved file."""

    path: str
    status: Literal["added", "modified", "removed", "renamed"]
    binary: bool
    additions: Count
    deletions: Count
    patch: str | None
    old_path: str | None = None
    similarity: int | None = None


class Compare(Model, frozen=True):
    """A comparison of two seals. `files`: changes from the merge base to `head`, or from `base` itself if
    requested. `base` None: changes of the seal `head` from its first parent. `merge_base`: the first of
    `merge_bases`, the nearest common ancestors, among which merged seals count. `ahead`, `behind`: numbers of
    seals along parents. `next_cursor`: cursor of the next page of files; None on the last page."""

    base: str | None
    head: str
    merge_base: str | None
    ahead: Count
    behind: Count
    files: list[ChangedFile]
    merge_bases: list[str] = msgspec.field(default_factory=list)
    next_cursor: str | None = None


Shortened = Annotated[
    str, msgspec.Meta(pattern=r"^[0-9a-f]{4,64}(?!\n)$", description="4 to 64 characters 0-9, a-f")
]


class CommitsQuery(PageQuery, frozen=True):
    """A query of seals, from `ref` or seal `sha` (default: the default branch) backwards. `path`: only seals
    that changed it; `follow`: also under earlier names of the file. `without`: exclude this branch, tag or
    seal and all its ancestors. `prefix`: seals of all branches and tags whose ids begin with it.
    `first_parent`: follow first parents only, without merged seals."""

    ref: str | None = None
    sha: str | None = None
    path: str | None = None
    prefix: Shortened | None = None
    follow: bool = False
    without: str | None = None
    first_parent: bool = False


class LogQuery(PageQuery, frozen=True):
    """A query of the log. `unverified`: ids and messages only. `first_parent`: without merged seals."""

    ref: str | None = None
    unverified: bool = False
    first_parent: bool = False


class BlameQuery(Model, frozen=True):
    """A query of blame. `first_parent`: lines from a merged branch are shown as changed by the merge."""

    first_parent: bool = False


class UpdatesQuery(PageQuery, frozen=True):
    """A query of a seal's live updates. `by` path: the number of updates of each path and device, with times.
    Without it: the updates themselves."""

    by: Literal["path"] | None = None


class TreeQuery(Model, frozen=True):
    """A query of a tree: the directory at `path`; `recursive`: every file below it."""

    path: str = ""
    recursive: bool = False


class PackQuery(Model, frozen=True):
    """A query of a slice of history. `from`: a seal (default: head of the default branch). `skip`: number of
    seals of the walk to leave out."""

    from_: str | None = msgspec.field(default=None, name="from")
    limit: Annotated[int, msgspec.Meta(ge=1, le=HISTORY_PACK_MAX)] | None = None
    skip: Count | None = None


class CompareQuery(Model, frozen=True):
    """A query of a comparison of two branches, tags or seal ids. `direct`: compare with the base itself, not
    with the merge base. Without `base`: changes of the head from its first parent. `limit`: files on one
    page; 0: only the relation of the two. `cursor`: from the previous page; its seals are compared even if
    the branches have moved."""

    head: str
    base: str | None = None
    direct: bool = False
    limit: Annotated[int, msgspec.Meta(ge=0, le=COMPARE_FILES)] = COMPARE_FILES
    cursor: str | None = None


COMMITS = Endpoint("GET", f"{REPO}/commits", query=CommitsQuery, returns=Page[SealSummary])
LOG = Endpoint("GET", f"{REPO}/log", query=LogQuery, returns=Page[Seal], instead=Page[SealLine])
SEAL = Endpoint("GET", f"{REPO}/seals/{{seal_id}}", returns=Seal)
SEAL_UPDATES = Endpoint(
    "GET",
    f"{REPO}/seals/{{seal_id}}/updates",
    query=UpdatesQuery,
    returns=Page[SealUpdate],
    instead=Page[PathUpdates],
)
TREE = Endpoint("GET", f"{REPO}/tree/{{sha}}", query=TreeQuery, returns=Tree, cap=LARGE_ANSWER)
PROOF = Endpoint("GET", f"{REPO}/tree/{{sha}}/proof", returns=bytes)
BLOB = Endpoint("GET", f"{REPO}/blob/{{sha}}/{{path...}}", returns=Blob)
RAW = Endpoint("GET", f"{REPO}/raw/{{sha}}/{{path...}}", returns=bytes)
ARCHIVE = Endpoint("GET", f"{REPO}/archive/{{sha}}.tar.gz", returns=bytes)
HISTORY_PACK = Endpoint("GET", f"{REPO}/history-pack", query=PackQuery, returns=bytes)
COMPARE = Endpoint("GET", f"{REPO}/compare", query=CompareQuery, returns=Compare)
BLAME = Endpoint("GET", f"{REPO}/seals/{{seal_id}}/blame/{{path...}}", query=BlameQuery, returns=Blame)
