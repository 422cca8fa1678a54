"""The table of rights: every route names an operation in it."""

from __future__ import annotations

import pytest

from localstore.core.model.rights import CALLERS, ELSEWHERE, IN_A_REPOSITORY, OPERATIONS, RANK, Operation
from relay import domain
from relay.base import edition
from relay.http.routing import TABLE, route

domain.load()

ALL = list(OPERATIONS.values())


def test_each_stands_in_the_table_once() -> None:
    assert len(OPERATIONS) == len(IN_A_REPOSITORY) + len(ELSEWHERE)


def test_no_route_goes_without() -> None:
    async def handler() -> None:
        """Nothing"""

    with pytest.raises(KeyError):
        route("GET", "/x", operation="no.such")(handler)
    with pytest.raises(TypeError, match="names none"):
        route("GET", "/x", operation="ref.list")(handler)


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_rights_grow_with_the_role(one: Operation) -> None:
    """Nobody may less than somebody below; what anybody may, a guest and a stranger may."""
    roles = ["read", "triage", "write", "admin", "owner"]
    may = [one.allows(role) for role in roles]  # type: ignore[arg-type]
    assert may == sorted(may)
    outside = [one.allows("anonymous"), one.allows("guest"), one.allows("stranger"), one.allows("author")]
    assert outside == sorted(outside)
    if one.about == "repository":
        assert one.least is not None
        assert one.stranger is (one.least == "read")


TALK = {
    "comment.create",
    "reaction.add",
    "reaction.remove",
    "review.create",
    "thread.create",
    "thread.comment",
}


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_a_credential_includes_what_a_change_needs(one: Operation) -> None:
    if one.about != "repository" or one.needs == "read":
        return
    expected = "talk" if one.name in TALK else "admin" if RANK[one.least] >= RANK["admin"] else "write"
    assert one.needs == expected


def test_the_rulings_hold() -> None:
    """A few rows, each from a ruling in words."""

    def who(name: str) -> set[str]:
        return {one for one in CALLERS if OPERATIONS[name].allows(one)}

    everybody = set(CALLERS)
    for name in ("issue.list", "proposal.list", "check.list", "ref.list", "history.tree"):
        assert who(name) == everybody, name
    for name in ("issue.create", "proposal.create", "comment.create", "fork.create"):
        assert who(name) == everybody - {"guest", "anonymous"}, name
    for name in (
        "protection.set",
        "webhook.create",
        "check.enable",
        "invite.create",
        "repo.update",
        "repo.delete",
    ):
        assert who(name) == {"owner"}, name
    for name in ("ref.create", "live.updates", "seal.finalize", "proposal.merge_finalize", "run.create"):
        assert who(name) == {"owner", "admin", "write"}, name
    assert who("issue.label") == {"owner", "admin", "write", "triage"}
    assert who("comment.delete") == {"owner", "admin", "author"}
    assert who("star.set") == everybody - {"anonymous"}
    assert who("report.decide") == {"owner"}
    refused = {one.name for one in ALL if one.about == "repository" and not one.archived}
    assert {"ref.create", "issue.create", "release.create", "protection.set", "path.set"} <= refused
    assert not refused & {"repo.update", "repo.delete", "transfer.create", "star.set", "watch.set"}


def test_an_edition_has_what_the_ones_below_it_have() -> None:
    publish, price = OPERATIONS["advisory.publish"], OPERATIONS["path.price"]
    for one, having in ((publish, [False, True, True]), (price, [False, False, True])):
        assert [
            one.in_edition(name) for name in ("self-hosted-community", "self-hosted-business", "managed")
        ] == having
    lacking = {one.operation.name for one in TABLE if not one.operation.in_edition(edition.EDITION)}
    assert {name.partition(".")[0] for name in lacking} == {"billing"}  # it answers what the edition lacks
