"""Declined invitations to organisations: who invited hears of it."""

from __future__ import annotations

from tests.relay.domain.access.test_organisation import INVITES, World, world
from tests.relay.histories import ok

__all__ = ["world"]  # the fixture


def test_who_invited_hears_that_it_was_declined(world: World) -> None:
    """As long as they are in the organisation; nobody else does, and what was done stays done."""
    bob, eve, admin = world.person(), world.person(), world.member("admin")
    for one in (bob, eve):
        ok(admin.http.post(f"{world.url}/invites", json={"handle": one.handle, "role": "member"}))
        (offer,) = ok(one.http.get("/api/v1/inbox"))["items"]
        assert (offer["event"], offer["actor"]["handle"]) == ("invite.create", admin.handle)
        ok(one.http.patch(f"/api/v1/inbox/{offer['id']}", json={"state": "done"}))
        ok(one.http.post(f"{INVITES}/{ok(one.http.get(INVITES))['items'][0]['id']}/decline"))
        assert ok(one.http.get("/api/v1/inbox", params={"all": "1"}))["items"] == []
    rows = ok(admin.http.get("/api/v1/inbox", params={"reason": "invited"}))["items"]
    assert [(one["event"], one["actor"]["handle"], one["unread"]) for one in rows] == [
        ("invite.decline", eve.handle, True),
        ("invite.decline", bob.handle, True),
    ]
    assert [one["subject"]["title"] for one in rows] == [world.org, world.org]
    page = ok(admin.http.get("/api/v1/inbox", params={"reason": "invited", "limit": 1}))
    rest = ok(
        admin.http.get(
            "/api/v1/inbox", params={"reason": "invited", "limit": 1, "cursor": page["next_cursor"]}
        )
    )
    assert [*page["items"], *rest["items"]] == rows
    assert ok(world.ann.http.get("/api/v1/inbox", params={"reason": "invited"}))["items"] == []
    url = f"/api/v1/inbox/{rows[0]['id']}"
    assert world.ann.http.patch(url, json={"state": "done"}).status_code == 404
    assert ok(admin.http.patch(url, json={"state": "done"}))["done"] is True
    assert ok(admin.http.patch("/api/v1/inbox", json={"state": "done"}))["changed"] == 1
    assert ok(admin.http.get("/api/v1/inbox"))["items"] == []
    assert world.ann.http.delete(f"{world.url}/members/{admin.handle}").is_success
    assert ok(admin.http.get("/api/v1/inbox", params={"all": "1"}))["items"] == []
