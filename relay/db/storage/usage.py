"""SQL statements on the usage of accounts and repositories, and on the number of accounts created from an
address."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import BigInteger, bindparam, case, cast, func, select, update

from relay.db.engine.database import Row
from relay.db.engine.upsert import InsertNew
from relay.db.live.live_batch import BYTES as LIVE_BYTES
from relay.db.schema.account import account
from relay.db.schema.live import live_batch
from relay.db.schema.ref import ref
from relay.db.schema.repo import repo
from relay.db.schema.storage import object_, repo_object
from relay.db.schema.usage import account_usage, address_usage, created, heartbeat, repo_usage


class UsageRow(msgspec.Struct, frozen=True):
    """The usage of an account. `max_*`: limits that were set for this account alone; None for the limit of
    the node."""

    account_id: str
    bytes: int
    objects: int
    repositories: int
    deleted_bytes: int
    deleted_objects: int
    deleted_repositories: int
    max_bytes: int | None
    max_objects: int | None
    max_repositories: int | None


_u, _r = account_usage.c, repo_usage.c
_COLUMNS = (
    _u.account_id,
    _u.bytes,
    _u.objects,
    _u.repositories,
    _u.deleted_bytes,
    _u.deleted_objects,
    _u.deleted_repositories,
    _u.max_bytes,
    _u.max_objects,
    _u.max_repositories,
)
_REPO: Any = bindparam("of_repo")
_OWNER = select(repo.c.owner_id).where(repo.c.id == _REPO).scalar_subquery()
_MINE = _u.account_id == bindparam("of_account")

# Rows are made by the first use.
ENSURE_ACCOUNT = InsertNew(account_usage)
ENSURE_REPO = InsertNew(repo_usage)


def unused_row(account_id: str) -> dict[str, Any]:
    """The row of an account that uses nothing."""
    row = UsageRow(account_id, 0, 0, 0, 0, 0, 0, None, None, None)
    return {name: getattr(row, name) for name in row.__struct_fields__}


def empty_row(repo_id: str) -> dict[str, Any]:
    """The row of a repository without objects."""
    return {"repo_id": repo_id, "bytes": 0, "objects": 0, "deleted": False}


OWNER = select(repo.c.owner_id).where(repo.c.id == _REPO)

ONE = select(*_COLUMNS).where(_MINE)
OF_OWNER = select(*_COLUMNS).where(_u.account_id == _OWNER)
OF_REPO = select(_r.bytes, _r.objects, _r.deleted).where(_r.repo_id == _REPO)
LISTED = (
    select(account.c.handle, *_COLUMNS)
    .select_from(account_usage.join(account, account.c.id == _u.account_id))
    .order_by((_u.bytes + _u.deleted_bytes).desc(), account.c.handle)
    .limit(bindparam("limit"))
)
# How many of these objects a repository does not reach yet, and their bytes.
FRESH = select(func.count(), cast(func.coalesce(func.sum(object_.c.size), 0), BigInteger)).where(
    object_.c.digest.in_(bindparam("digests", expanding=True)),
    ~select(repo_object.c.digest)
    .where(repo_object.c.repo_id == _REPO, repo_object.c.digest == object_.c.digest)
    .exists(),
)
HELD = select(repo_object.c.digest).where(
    repo_object.c.repo_id == _REPO, repo_object.c.digest.in_(bindparam("digests", expanding=True))
)

COUNT_REPO = (
    update(repo_usage)
    .where(_r.repo_id == _REPO)
    .values(bytes=_r.bytes + bindparam("more_bytes"), objects=_r.objects + bindparam("more_objects"))
    .returning(_r.deleted)
)
# Counted among deleted repositories, or not.
_MORE: dict[str, Any] = {"bytes": bindparam("more_bytes"), "objects": bindparam("more_objects")}
COUNT = (
    update(account_usage)
    .where(_u.account_id == _OWNER)
    .values({name: _u[name] + more for name, more in _MORE.items()})
    .returning(*_COLUMNS)
)
COUNT_DELETED = (
    update(account_usage)
    .where(_u.account_id == _OWNER)
    .values({f"deleted_{name}": _u[f"deleted_{name}"] + more for name, more in _MORE.items()})
    .returning(*_COLUMNS)
)
COUNT_REPOSITORY = (
    update(account_usage).where(_MINE).values(repositories=_u.repositories + 1).returning(*_COLUMNS)
)
# A repository with all it has, from what is there to what is deleted, or back.
_ALL: Any = {"bytes": bindparam("all_bytes"), "objects": bindparam("all_objects"), "repositories": 1}
MARK_DELETED = update(repo_usage).where(_r.repo_id == _REPO).values(deleted=bindparam("is_deleted"))
TO_DELETED = (
    update(account_usage)
    .where(_u.account_id == _OWNER)
    .values(
        {name: _u[name] - n for name, n in _ALL.items()}
        | {f"deleted_{name}": _u[f"deleted_{name}"] + n for name, n in _ALL.items()}
    )
)
FROM_DELETED = (
    update(account_usage)
    .where(_u.account_id == _OWNER)
    .values(
        {name: _u[name] + n for name, n in _ALL.items()}
        | {f"deleted_{name}": _u[f"deleted_{name}"] - n for name, n in _ALL.items()}
    )
)
PURGED = (
    update(account_usage)
    .where(_u.account_id == _OWNER)
    .values({f"deleted_{name}": _u[f"deleted_{name}"] - n for name, n in _ALL.items()})
)

# The same, of one account: what a repository has goes from its old owner to its new one.
GIVEN_AWAY = update(account_usage).where(_MINE).values({name: _u[name] - n for name, n in _ALL.items()})
RECEIVED = (
    update(account_usage)
    .where(_MINE)
    .values({name: _u[name] + n for name, n in _ALL.items()})
    .returning(*_COLUMNS)
)

ACCOUNT_ID = select(account.c.id).where(account.c.handle == bindparam("handle"))
SET_LIMITS = (
    update(account_usage)
    .where(_MINE)
    .values({f"max_{what}": bindparam(f"new_{what}") for what in ("bytes", "objects", "repositories")})
)

# New accounts of an address: the count begins anew when its window is over.
ENSURE_ADDRESS = InsertNew(address_usage)
_over = address_usage.c.expires_at <= bindparam("now")
COUNT_ADDRESS = (
    update(address_usage)
    .where(address_usage.c.address == bindparam("of_address"))
    .values(
        accounts=case((_over, 1), else_=address_usage.c.accounts + 1),
        expires_at=case((_over, bindparam("until")), else_=address_usage.c.expires_at),
    )
    .returning(address_usage.c.accounts)
)

# What an account created, likewise: how many, and when the window ends.
ENSURE_CREATED = InsertNew(created)
_gone = created.c.expires_at <= bindparam("now")
COUNT_CREATED = (
    update(created)
    .where(created.c.account_id == bindparam("of_account"), created.c.kind == bindparam("of_kind"))
    .values(
        made=case((_gone, bindparam("more")), else_=created.c.made + bindparam("more")),
        expires_at=case((_gone, bindparam("until")), else_=created.c.expires_at),
    )
    .returning(created.c.made, created.c.expires_at)
)

# What repositories have, beside what was counted; and what was counted for accounts.
_sizes = (
    select(
        repo_object.c.repo_id,
        cast(func.sum(object_.c.size), BigInteger).label("bytes"),
        func.count().label("objects"),
    )
    .select_from(repo_object.join(object_, object_.c.digest == repo_object.c.digest))
    .group_by(repo_object.c.repo_id)
    .subquery()
)
_live = (
    select(ref.c.repo_id, LIVE_BYTES.label("bytes"))
    .select_from(live_batch.join(ref, ref.c.id == live_batch.c.branch_id))
    .group_by(ref.c.repo_id)
    .subquery()
)
REAL = select(
    repo.c.id,
    repo.c.owner_id,
    repo.c.state == "deleted",
    cast(func.coalesce(_sizes.c.bytes, 0) + func.coalesce(_live.c.bytes, 0), BigInteger),
    func.coalesce(_sizes.c.objects, 0),
    _r.bytes,
    _r.objects,
    _r.deleted,
).select_from(
    repo.outerjoin(_sizes, _sizes.c.repo_id == repo.c.id)
    .outerjoin(_live, _live.c.repo_id == repo.c.id)
    .outerjoin(repo_usage, _r.repo_id == repo.c.id)
)
REAL_OF = REAL.where(repo.c.id.in_(bindparam("ids", expanding=True)))
COUNTED = select(*_COLUMNS[:7])
SET_REPO = (
    update(repo_usage)
    .where(_r.repo_id == _REPO)
    .values(bytes=bindparam("new_bytes"), objects=bindparam("new_objects"), deleted=bindparam("new_deleted"))
)
SET_ACCOUNT = (
    update(account_usage)
    .where(_MINE)
    .values({column.name: bindparam(f"new_{column.name}") for column in _COLUMNS[1:7]})
)

BEAT_FIRST = InsertNew(heartbeat)
BEAT = update(heartbeat).where(heartbeat.c.id == 1).values(at=bindparam("now"))


def to_row(columns: Row) -> UsageRow:
    return UsageRow(*columns)
