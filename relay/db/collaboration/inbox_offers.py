"""Statements on invitations to organisations as rows of an inbox: of the account while they wait, of the
inviter once they are declined."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, and_, bindparam, false, literal, or_, select, update

from relay.db.engine.keyset import Keyset
from relay.db.schema.account import account
from relay.db.schema.collaboration.organisation import member, member_invite

_ORG = account.alias("org")
_INVITER = account.alias("inviter")
_MINE = and_(
    member_invite.c.account_id == bindparam("account"),
    member_invite.c.state == "pending",
    member_invite.c.valid_until > bindparam("current", type_=BigInteger),
)
# The key has the names and types of that of the inbox, so that both have one cursor.
_ROWS = (
    select(
        member_invite.c.org_id.label("repo_id"),
        literal(0, BigInteger).label("number"),
        member_invite.c.unread,
        member_invite.c.done,
        member_invite.c.created_at.label("updated_at"),
        _ORG.c.handle,
        _INVITER.c.id.label("inviter_id"),
        _INVITER.c.handle.label("inviter_handle"),
        _INVITER.c.kind.label("inviter_kind"),
    )
    .select_from(
        member_invite.join(_ORG, _ORG.c.id == member_invite.c.org_id).join(
            _INVITER, _INVITER.c.id == member_invite.c.inviter_id
        )
    )
    .where(_MINE, _ORG.c.disabled_at.is_(None))
)
_WHO = account.alias("who")
_BY_ME = and_(
    member_invite.c.inviter_id == bindparam("account"),
    member_invite.c.state == "declined",
    member_invite.c.answered_at.is_not(None),
)
_STILL_MEMBER = and_(
    member.c.org_id == member_invite.c.org_id, member.c.account_id == member_invite.c.inviter_id
)
_ANSWERS = (
    select(
        member_invite.c.id.label("repo_id"),
        literal(0, BigInteger).label("number"),
        member_invite.c.unread,
        member_invite.c.done,
        member_invite.c.answered_at.label("updated_at"),
        _ORG.c.handle,
        _WHO.c.id.label("who_id"),
        _WHO.c.handle.label("who_handle"),
        _WHO.c.kind.label("who_kind"),
    )
    .select_from(
        member_invite.join(_ORG, _ORG.c.id == member_invite.c.org_id)
        .join(_WHO, _WHO.c.id == member_invite.c.account_id)
        .join(member, _STILL_MEMBER)
    )
    .where(_BY_ME, _ORG.c.disabled_at.is_(None))
)
_FILTERS: dict[str, ColumnElement[bool]] = {"open": member_invite.c.done == false()}


@cache
def page(filters: frozenset[str]) -> Keyset:
    """Invitations of an account, newest first."""
    chosen = _ROWS.where(*(_FILTERS[name] for name in sorted(filters)))
    return Keyset(chosen, "-updated_at", "-repo_id", "-number")


@cache
def answers(filters: frozenset[str]) -> Keyset:
    """Declined invitations of an inviter who is a member of the organisation, newest first."""
    chosen = _ANSWERS.where(*(_FILTERS[name] for name in sorted(filters)))
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
