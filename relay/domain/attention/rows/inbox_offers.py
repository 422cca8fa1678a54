"""SQL statements that show invitations to organisations as rows of an inbox. The invited account sees open
ones; the inviter sees declined ones.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Select,
    and_,
    bindparam,
    exists,
    false,
    literal,
    or_,
    select,
    update,
)

from relay.db.engine.keyset import Keyset
from relay.db.schema.account import account
from relay.db.schema.collaboration.organisation import member, member_invite

_ORG, _OTHER = account.alias("org"), account.alias("other")
_MINE = and_(
    member_invite.c.account_id == bindparam("account"),
    member_invite.c.state == "pending",
    member_invite.c.valid_until > bindparam("current", type_=BigInteger),
)
_BY_ME = and_(
    member_invite.c.inviter_id == bindparam("account"),
    member_invite.c.state == "declined",
    member_invite.c.answered_at.is_not(None),
)
_STILL_MEMBER = exists().where(
    member.c.org_id == member_invite.c.org_id, member.c.account_id == member_invite.c.inviter_id
)


def _select_rows(about: Column[Any], updated_at: Column[Any], other: Column[Any]) -> Select[Any]:
    """A SELECT of invitations to organisations as rows of an inbox. `about`: the column with the id that
    stands in the row. `other`: the column with the account that invited or declined.

    The columns of the sort key have the same names and types as in the inbox. So one cursor serves both
    lists.
    """
    return (
        select(
            about.label("repo_id"),
            literal(0, BigInteger).label("number"),
            member_invite.c.unread,
            member_invite.c.done,
            updated_at.label("updated_at"),
            _ORG.c.handle,
            _OTHER.c.id.label("other_id"),
            _OTHER.c.handle.label("other_handle"),
            _OTHER.c.kind.label("other_kind"),
        )
        .select_from(
            member_invite.join(_ORG, _ORG.c.id == member_invite.c.org_id).join(_OTHER, _OTHER.c.id == other)
        )
        .where(_ORG.c.disabled_at.is_(None))
    )


_c = member_invite.c
_ROWS = _select_rows(_c.org_id, _c.created_at, _c.inviter_id).where(_MINE)
_ANSWERS = _select_rows(_c.id, _c.answered_at, _c.account_id).where(_BY_ME, _STILL_MEMBER)
_FILTERS: dict[str, ColumnElement[bool]] = {"open": member_invite.c.done == false()}


@cache
def keyset_of(filters: frozenset[str]) -> Keyset:
    """SQL statements that read a page of an account's open invitations, newest first. `filters`: names of the
    `_FILTERS` to apply."""
    return _filter_newest_first(_ROWS, filters)


@cache
def answers(filters: frozenset[str]) -> Keyset:
    """SQL statements that read a page of declined invitations that the account made, newest first.
    Invitations to organisations that it has left are not included. `filters`: names of the `_FILTERS` to
    apply."""
    return _filter_newest_first(_ANSWERS, filters)


def _filter_newest_first(invites: Select[Any], filters: frozenset[str]) -> Keyset:
    chosen = invites.where(*(_FILTERS[name] for name in sorted(filters)))
    return Keyset(chosen, "-updated_at", "-repo_id", "-number")


_THIS = member_invite.c.org_id == bindparam("of_org")
ONE = _ROWS.where(_THIS)
_MARKS: dict[str, Any] = {"unread": bindparam("new_unread"), "done": bindparam("new_done")}
_DIFFERS = or_(
    member_invite.c.unread != bindparam("new_unread"), member_invite.c.done != bindparam("new_done")
)
MARK = update(member_invite).where(_MINE, _THIS).values(_MARKS)
MARK_ALL = update(member_invite).where(_MINE, member_invite.c.done == false(), _DIFFERS).values(_MARKS)
_ANSWER = member_invite.c.id == bindparam("of_invite")
ANSWER = _ANSWERS.where(_ANSWER)
MARK_ANSWER = update(member_invite).where(_BY_ME, _ANSWER).values(_MARKS)
MARK_ANSWERS = update(member_invite).where(_BY_ME, member_invite.c.done == false(), _DIFFERS).values(_MARKS)
