"""Sealed history: seals, trees, files, blame, comparison."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.lane.update import LiveUpdate, UpdateKind
from localstore.core.model.base import Actor, Count, Model, Page, PageQuery
from localstore.core.model.limits import COMPARE_FILES, HISTORY_PACK_MAX, LARGE_ANSWER


class SealKey(Model, frozen=True):
    """The device key that signed a seal, for verification. `registration`: the key's signature of its own
    registration for `account`."""

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
    """Who made a seal, with which device key and capability. `author` and `git_id`: author and id of the git
    commit that the seal was imported from. `merged`: seals that count as its ancestors although they are
    not its parents."""

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
        """The ids of the ancestors besides the first parent: the other parents and the merged seals. [] for a
        seal that is no merge."""
        return [*self.parents[1:], *self.provenance.merged]


class Seal(SealSummary, frozen=True):
    """A seal. `payload`: the signed bytes (b64u). `verified`: the result of the relay's own check; clients
    verify the seal themselves. `origin`: id of the repository in which the seal was made, if it is another
    one: the parent of a fork, or the fork that a proposal comes from."""

    signature: SealSignature
    payload: str
    key: SealKey
    verified: bool | None = None
    origin: str | None = None


class SealUpdate(Model, omit_defaults=True, frozen=True):
    """A live update that a seal contains. `seq`: its number on the branch. `update`: for an edit, everything
    that the device signed (see localstore.core.lane.update), together with `branch_id`, `replica` and
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
    """The live updates of one path in a seal that one person made on one device: how many there are, and when
    the first and the last were made."""

    path: str
    who: Actor
    device_key_id: str
    updates: Count
    first_at: str
    last_at: str


class SealLine(Model, frozen=True):
    """A seal in a log that was requested with `unverified`: only its id and its message, which the client
    does not verify."""

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
    """The files of a seal's tree below `path`. `tree_key` (b64u): the key for computing `content_digest`,
    given only to a caller who sees all paths. `filtered`: some paths are hidden from the caller."""

    sha: str
    content_digest: str
    path: str
    recursive: bool
    filtered: bool
    entries: list[TreeFile]
    tree_key: str | None = None
    tree_key_id: str | None = None


class Blob(Model, frozen=True):
    """A file with its content. `content`: None if the file is larger than the limit for content in answers;
    `truncated` is then true."""

    path: str
    kind: Literal["text", "blob", "chunked"]
    blake3: str
    size: Count
    encoding: Literal["utf-8", "base64"]
    content: str | None
    truncated: bool


class BlameRange(Model, frozen=True):
    """Lines `start` to `end` of a file, which were last changed by the seal `seal_id`. Lines count from 1,
    and both are included."""

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
    """A changed file of a comparison. `patch`: unified diff of a text file; None for a binary file and for a
    file over the diff limit. `old_path`, `similarity` (percent): present if the file was moved."""

    path: str
    status: Literal["added", "modified", "removed", "renamed"]
    binary: bool
    additions: Count
    deletions: Count
    patch: str | None
    old_path: str | None = None
    similarity: int | None = None


class Compare(Model, frozen=True):
    """A comparison of two seals. `files`: what changed from the merge base to `head`, or from `base` itself
    if the query asked for that. If `base` is None, `files` are the changes of the seal `head` against its
    first parent. `merge_bases`: the nearest common ancestors, where merged seals count as ancestors;
    `merge_base`: the first of them. `ahead`: how many seals only the history of `head` has; `behind`: how
    many only the history of `base` has. For these two numbers, merged seals do not count. `next_cursor`:
    cursor of the next page of files, None on the last page."""

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
    """Which seals to list. The list begins at `ref` or at the seal `sha`, by default at the default branch,
    and goes back in history. `path`: only seals that changed this path; `follow`: also seals that changed the
    file under an earlier name. `without`: leave out this branch, tag or seal with all its ancestors.
    `first_parent`: follow only first parents, without merged seals. `prefix`: instead, list the seals whose
    ids begin with it, on all branches and tags."""

    ref: str | None = None
    sha: str | None = None
    path: str | None = None
    prefix: Shortened | None = None
    follow: bool = False
    without: str | None = None
    first_parent: bool = False


class LogQuery(PageQuery, frozen=True):
    """Which part of the log to list. `unverified`: return only ids and messages. `first_parent`: leave out
    merged seals."""

    ref: str | None = None
    unverified: bool = False
    first_parent: bool = False


class BlameQuery(Model, frozen=True):
    """How to find the seal that each line comes from. `first_parent`: for a line that came from a merged
    branch, name the merge instead of the seal on that branch."""

    first_parent: bool = False


class UpdatesQuery(PageQuery, frozen=True):
    """How to list a seal's live updates. If `by` is `path`, the answer has one `PathUpdates` for each path
    and device. Without `by`, it has the updates themselves."""

    by: Literal["path"] | None = None


class TreeQuery(Model, frozen=True):
    """Which files of a tree to list: those of the directory `path`; with `recursive` also all files below
    it."""

    path: str = ""
    recursive: bool = False


class PackQuery(Model, frozen=True):
    """Which part of history to download. It begins at the seal `from`, by default the newest seal of the
    default branch, and goes back. `skip`: how many seals to leave out at the start; `limit`: how many to
    send at most."""

    from_: str | None = msgspec.field(default=None, name="from")
    limit: Annotated[int, msgspec.Meta(ge=1, le=HISTORY_PACK_MAX)] | None = None
    skip: Count | None = None


class CompareQuery(Model, frozen=True):
    """What to compare: two branches, tags or seal ids. `direct`: compare with `base` itself, not with the
    merge base. Without `base`, `head` is compared with its first parent. `limit`: files on one page; 0 to
    get only the relation of the two. `cursor`: the cursor from the previous page; the seals of that page
    are compared even if the branches have moved."""

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
