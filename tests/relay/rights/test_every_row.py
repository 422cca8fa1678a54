"""Every row about a repository, those without a route too, as the gate and the transaction read it."""

from __future__ import annotations

from typing import Any

import pytest

from localstore.core.errors import Forbidden
from localstore.core.model.auth import IdentityLevel
from localstore.core.model.repo import RepositoryArchived
from localstore.core.model.rights import CALLERS, IN_A_REPOSITORY, Operation, Who
from relay.caller import Principal, View
from relay.db.repo import RepoRow, Role

ROLES: dict[Who, Role] = {
    "owner": "owner",
    "admin": "admin",
    "write": "write",
    "triage": "triage",
    "read": "read",
}
NOWHERE: Any = None  # what is asked here needs no node


def seen(operation: Operation, who: Who, state: str = "active") -> View:
    """A public repository as this caller sees it."""
    principal = Principal(
        account_id=who,
        handle=None,
        kind="guest" if who == "guest" else "user",
        phase="",
        session_id="",
        session_kind="",
        expires_at=0,
        caps=frozenset({"read", "write", "admin"}),
        device_key_id=None,
        via="bearer",
    )
    row = RepoRow("id", "o", "o", "n", "app", "published_public", "", "main", state, None, b"", "", 0, 0)
    return View(
        node=NOWHERE,
        principal=None if who == "anonymous" else principal,
        address="",
        repo=row,
        role=ROLES.get(who),
        operation=operation,
    )


@pytest.mark.parametrize("who", CALLERS)
@pytest.mark.parametrize("one", IN_A_REPOSITORY, ids=lambda one: one.name)
def test_a_row_lets_through_whom_it_names(one: Operation, who: Who) -> None:
    view = seen(one, who)
    if not one.allows(who) and not (one.author and who not in ("guest", "anonymous")):
        with pytest.raises(IdentityLevel if who == "guest" else Forbidden):
            view.require_allowed()
        return
    view.require_allowed()
    # Whoever has not the role is let through as a possible author, and has to prove it.
    rank = who in ROLES and one.allows(who)
    if one.author and not rank:
        with pytest.raises(Forbidden):
            view.require_author("somebody else")
        view.require_author(view.me.account_id)
    view._require_proven()


@pytest.mark.parametrize("state", ["active", "archived"])
@pytest.mark.parametrize("who", CALLERS)
def test_a_page_asks_as_the_gate_refuses(who: Who, state: str) -> None:
    """Of every operation a view says beforehand what the gate would do."""
    reader = seen(IN_A_REPOSITORY[0], who, state)
    for operation in IN_A_REPOSITORY:
        try:
            seen(operation, who, state).require_allowed()
        except (Forbidden, RepositoryArchived):
            assert not reader.may(operation), operation.name
        else:
            assert reader.may(operation), operation.name


@pytest.mark.parametrize("one", IN_A_REPOSITORY, ids=lambda one: one.name)
def test_a_row_says_whether_while_archived(one: Operation) -> None:
    view = seen(one, "owner", "archived")
    if one.archived:
        view.require_allowed()
    else:
        with pytest.raises(RepositoryArchived, match="unarchive"):
            view.require_allowed()
