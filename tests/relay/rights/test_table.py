"""The table of rights: every route names an operation in it; every operation has a route or is to come."""

from __future__ import annotations

import pytest

from localstore.core.rights import CALLERS, OPERATIONS, Operation, elsewhere, repositories
from localstore.core.rights.operation import RANK
from relay import routes
from relay.base import edition
from relay.http.routing import TABLE, route

routes.load()

WITHOUT_ROUTE = """
advisory.publish
api_key.create
api_key.get
api_key.list
api_key.revoke
api_key.rotate
api_key.validate
billing.checkout
billing.invoices
billing.portal
billing.subscription
blog.categories
blog.posts
catalog.apps
catalog.model_packs
checkpoint.create
checkpoint.frontiers
checkpoint.head
checkpoint.list
checkpoint.travel
cloud.launch
cloud.list
cloud.status
cloud.stop
device.list
device.pair
device.revoke
document.archive
document.create
document.delete
document.get
document.list
document.put
document.unarchive
file.delete
file.list
file.retired
fork.create
fork.list
git_proxy.get
history.proof
issue.assign
issue.close
issue.edit
issue.reopen
organisation.create
organisation.get
organisation.members
page.repository
path.price
proposal.auto_merge
proposal.close
proposal.edit
proposal.ready
proposal.reopen
proposal.reviewers
report.create
report.decide
report.list
session.callback
session.export_key
suggestion.prepare
thread.comment
thread.create
thread.list
thread.resolve
upstream.get
upstream.remove
upstream.set
webhook.create
webhook.delete
webhook.deliveries
webhook.list
webhook.ping
webhook.redeliver
"""
TO_COME = frozenset(WITHOUT_ROUTE.split())
ALL = list(OPERATIONS.values())


def test_each_operation_has_a_route_or_is_to_come() -> None:
    served = {one.operation.name for one in TABLE}
    assert served | TO_COME == set(OPERATIONS)
    assert not served & TO_COME, "these have routes now; take them off the list"


def test_each_stands_in_the_table_once() -> None:
    assert len(OPERATIONS) == len(repositories.OPERATIONS) + len(elsewhere.OPERATIONS)


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


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_a_credential_includes_what_a_change_needs(one: Operation) -> None:
    if one.about != "repository" or one.needs == "read":
        return
    assert one.needs == ("admin" if RANK[one.least] >= RANK["admin"] else "write")


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
    assert all(one.operation.in_edition(edition.EDITION) for one in TABLE)
