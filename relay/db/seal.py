"""SQL statements on seals, their parents and changes, and on seals that are prepared but not signed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from sqlalchemy import ColumnElement, and_, bindparam, delete, func, insert, or_, select, update

from localstore.core.encoding import HEX_DIGITS
from localstore.core.seal import LISTED
from relay.db.engine.database import Row, Tx
from relay.db.schema.account import account, device_key
from relay.db.schema.ref import ref
from relay.db.schema.repo import collaborator, repo
from relay.db.schema.seal import prepare, repo_seal, seal, seal_change, seal_parent, seal_source

Purpose = Literal["seal", "seals", "merge", "auto"]
"""Of what is prepared: a seal of the frontier, seals from explicit trees, a proposal's merge, one that is
signed and waits."""
SHORTEST = 8  # hex digits of a seal id that may stand for it
_ID_DIGITS = 64


@dataclass(slots=True, frozen=True)
class SealRow:
    """A seal with the public key that signed it and the key's self-signed registration, which readers need to
    verify it. `root`: the tree that the repository stores for the seal; `signed_root`: the tree that was
    signed. They differ if the repository has some entries only as digests."""

    id: str
    repo_id: str
    branch: str
    generation: int
    root: bytes
    payload: bytes = field(repr=False)
    signature: bytes
    account_id: str
    device_key_id: str
    message: str
    created_at: int
    handle: str | None
    account_kind: str
    key_ed25519: bytes
    key_created_at: int
    key_revoked_at: int | None
    key_registration: bytes
    signed_root: bytes


class SealDraft(msgspec.Struct, frozen=True, array_like=True):
    """A seal before it is signed. `changes`: the changed files as (path, kind, digest, size); the kind of a
    removed file is None."""

    id: str
    payload: bytes
    root: bytes
    parents: list[str]
    message: str
    created_at: int
    changes: list[tuple[str, str | None, bytes, int]]


@dataclass(slots=True, frozen=True)
class PrepareRow:
    """Seals that were prepared for a branch and wait for a signature. `purpose`: the operation that may make
    them part of the branch. `subject`: what the seals are for, as a text. For a merge it names the act,
    the proposal's number, the merged seal and the strategy (`relay.domain.merging.subjects.About.to_text`);
    for suggestions, the proposal's number and the threads (`relay.domain.proposal.suggestion`). Otherwise
    None. `at_seq`: number of the last live update in them."""

    id: str
    purpose: Purpose
    subject: str | None
    branch_id: str
    account_id: str
    device_key_id: str
    expected_head: str | None
    at_seq: int | None
    seals: bytes = field(repr=False)
    expires_at: int


OWN_COLUMNS = (
    seal.c.id,
    seal.c.repo_id,
    seal.c.branch,
    seal.c.generation,
    seal.c.root,
    seal.c.payload,
    seal.c.signature,
    seal.c.account_id,
    seal.c.device_key_id,
    seal.c.message,
    seal.c.created_at,
)


def root_in(repo_id: Any) -> ColumnElement[bytes]:
    """An SQL expression for queries of the table `seal`: the root of a seal's tree, as the repository
    `repo_id` has it. A repository may have its own, partial tree for a seal."""
    own = select(repo_seal.c.root).where(repo_seal.c.repo_id == repo_id, repo_seal.c.seal_id == seal.c.id)
    return func.coalesce(own.correlate(seal).scalar_subquery(), seal.c.root)


_ROOT = root_in(bindparam("repo_id")).label("root")
COLUMNS = (
    *(_ROOT if column is seal.c.root else column for column in OWN_COLUMNS),
    account.c.handle,
    account.c.kind,
    device_key.c.ed25519,
    device_key.c.created_at,
    device_key.c.revoked_at,
    device_key.c.registration,
    seal.c.root,
)
FROM = seal.join(account, account.c.id == seal.c.account_id).join(
    device_key, device_key.c.id == seal.c.device_key_id
)


def held_by(repo_id: Any) -> ColumnElement[bool]:
    """The SQL condition that a seal belongs to this repository. It was made there, or came there with a fork
    or a proposal."""
    came = select(repo_seal.c.seal_id).where(repo_seal.c.repo_id == repo_id, repo_seal.c.seal_id == seal.c.id)
    return or_(seal.c.repo_id == repo_id, came.correlate(seal).exists())


_HERE = held_by(bindparam("repo_id"))

MANY = select(*COLUMNS).select_from(FROM).where(_HERE, seal.c.id.in_(bindparam("ids", expanding=True)))
HEADS = select(seal.c.id, seal.c.generation, _ROOT).where(
    _HERE, seal.c.id.in_(bindparam("ids", expanding=True))
)
LIKE = (
    select(seal.c.id)
    .where(_HERE, seal.c.id >= bindparam("first"), seal.c.id <= bindparam("last"))
    .order_by(seal.c.id)
    .limit(2)
)
INSERT = insert(seal)
PARENTS = (
    select(seal_parent.c.seal_id, seal_parent.c.parent_id)
    .where(seal_parent.c.seal_id.in_(bindparam("ids", expanding=True)))
    .order_by(seal_parent.c.seal_id, seal_parent.c.position)
)
INSERT_PARENT = insert(seal_parent)
# (seal, source, strategy of the merge)
SOURCES = (
    select(seal_source.c.seal_id, seal_source.c.source_id, seal_source.c.strategy)
    .where(seal_source.c.seal_id.in_(bindparam("ids", expanding=True)))
    .order_by(seal_source.c.seal_id, seal_source.c.position)
)
# The sources that this repository has: (seal, source, strategy of the merge).
HELD_SOURCES = (
    select(seal_source.c.seal_id, seal_source.c.source_id, seal_source.c.strategy)
    .select_from(seal_source.join(seal, seal.c.id == seal_source.c.source_id))
    .where(
        _HERE,
        seal_source.c.seal_id.in_(bindparam("ids", expanding=True)),
    )
    .order_by(seal_source.c.seal_id, seal_source.c.position)
)
INSERT_SOURCE = insert(seal_source)
# (id, generation, rank or None, time in the order of history)
RANKS = select(
    seal.c.id, seal.c.generation, seal.c.rank, func.coalesce(seal.c.order_at, seal.c.created_at)
).where(seal.c.id.in_(bindparam("ids", expanding=True)))
INSERT_CHANGE = insert(seal_change)

PREPARE = insert(prepare)
PREPARED_BYTES = select(func.length(prepare.c.seals)).where(prepare.c.id == bindparam("prepare_id"))
PREPARED = select(
    prepare.c.id,
    prepare.c.purpose,
    prepare.c.subject,
    prepare.c.branch_id,
    prepare.c.account_id,
    prepare.c.device_key_id,
    prepare.c.expected_head,
    prepare.c.at_seq,
    prepare.c.seals,
    prepare.c.expires_at,
).where(prepare.c.id == bindparam("prepare_id"))
REPURPOSE = (
    update(prepare)
    .where(prepare.c.id == bindparam("prepare_id"))
    .values(purpose=bindparam("new_purpose"), expires_at=bindparam("new_expires_at"))
)
DROP_PREPARED = delete(prepare).where(prepare.c.id == bindparam("prepare_id"))
# What is prepared in a repository that takes no seal, or by who may not write there.
_MAY_SEAL = (
    select(repo.c.id)
    .select_from(
        repo.outerjoin(
            collaborator,
            and_(
                collaborator.c.repo_id == repo.c.id,
                collaborator.c.account_id == prepare.c.account_id,
                collaborator.c.role.in_(("write", "admin", "owner")),
            ),
        )
    )
    .where(
        repo.c.id == bindparam("repo_id"),
        repo.c.state == "active",
        or_(repo.c.owner_id == prepare.c.account_id, collaborator.c.account_id.is_not(None)),
    )
    .correlate(prepare)
)
DROP_UNFINISHABLE = delete(prepare).where(
    prepare.c.branch_id.in_(select(ref.c.id).where(ref.c.repo_id == bindparam("repo_id"))),
    ~_MAY_SEAL.exists(),
)
_OWN_PREPARED = and_(
    prepare.c.branch_id == bindparam("branch_id"),
    prepare.c.device_key_id == bindparam("device_key_id"),
    prepare.c.purpose == bindparam("purpose"),
)
# All that a device prepared for the branch and this purpose but the latest.
CROWD_OUT = delete(prepare).where(
    _OWN_PREPARED,
    prepare.c.id.not_in(
        select(prepare.c.id)
        .where(_OWN_PREPARED)
        .order_by(prepare.c.expires_at.desc(), prepare.c.id)
        .limit(bindparam("keep"))
    ),
)
PURGE_PREPARED = delete(prepare).where(prepare.c.expires_at < bindparam("before"))


def to_row(columns: Row) -> SealRow:
    return SealRow(*columns)


def to_prepared(columns: Row) -> PrepareRow:
    return PrepareRow(*columns)


async def resolve(tx: Tx, repo_id: str, text: str) -> str | None:
    """The full seal id for `text`, the beginning of exactly one seal id of this repository. Returns None for
    other texts, and for a text of fewer than SHORTEST digits."""
    if not SHORTEST <= len(text) <= _ID_DIGITS or not HEX_DIGITS.issuperset(text):
        return None
    last = text.ljust(_ID_DIGITS, "f")
    matches = await tx.all(LIKE, repo_id=repo_id, first=text.ljust(_ID_DIGITS, "0"), last=last)
    return str(matches[0][0]) if len(matches) == 1 else None


async def root_of(tx: Tx, repo_id: str, seal_id: str) -> bytes | None:
    """The root of the tree of a seal in this repository; None if the repository has no such seal."""
    heads = await tx.all(HEADS, repo_id=repo_id, ids=[seal_id])
    return bytes(heads[0][2]) if heads else None


async def find_parents(tx: Tx, ids: list[str]) -> dict[str, list[str]]:
    """The parents of each seal, in order: seal id → ids."""
    parents_of: dict[str, list[str]] = {seal_id: [] for seal_id in ids}
    for child, parent in await tx.all(PARENTS, ids=ids):
        parents_of[child].append(parent)
    return parents_of


async def held_sources(
    tx: Tx, repo_id: str, ids: list[str], strategies: Sequence[str] = LISTED
) -> dict[str, list[str]]:
    """The merge sources of each seal, in order, that are in the repository: seal id → ids. `strategies`:
    merges by these strategies count, such as `merge` but not `squash`; merges with an unknown strategy count
    too."""
    sources_of: dict[str, list[str]] = {seal_id: [] for seal_id in ids}
    if not ids:
        return sources_of
    for merged, source, strategy in await tx.all(HELD_SOURCES, repo_id=repo_id, ids=ids):
        if strategy is None or strategy in strategies:
            sources_of[merged].append(source)
    return sources_of
