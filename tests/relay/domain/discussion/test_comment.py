"""What hangs on issues: labels, people, comments, reactions; and how much of it there may be."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select, update

from localstore.core.model import limits
from relay.base.clock import now_ms
from relay.db.schema import tables
from relay.domain.upkeep import upkeep
from tests.relay.histories import create, ok
from tests.relay.tracker import Tracker, code, world

__all__ = ["world"]  # the fixture

# --- labels and people on issues


def test_labels_on_issues_follow_the_label(world: Tracker) -> None:
    world.label("bug")
    world.open(labels=["Bug"])
    one = f"{world.issues}/1"
    assert code(world.http.put(f"{one}/labels/new")) == (422, "invalid")
    assert code(world.http.put(f"{one}/labels/%20x?create=1")) == (422, "invalid")
    made = ok(world.http.put(f"{one}/labels/area%2Fui?create=1"))
    assert [label["name"] for label in made["labels"]] == ["area/ui", "bug"]
    renamed = ok(
        world.http.patch(f"{world.repo.url}/labels/BUG", json={"name": "defect", "color": "#FF0000"})
    )
    assert renamed == {"name": "defect", "color": "ff0000", "description": None}
    assert [label["name"] for label in ok(world.http.get(one))["labels"]] == ["area/ui", "defect"]
    assert world.listed(label="defect") == [1]
    assert code(world.http.patch(f"{world.repo.url}/labels/defect", json={"name": "AREA/UI"})) == (
        409,
        "label_exists",
    )
    assert world.http.delete(f"{world.repo.url}/labels/area%2Fui").status_code == 204
    assert code(world.http.delete(f"{world.repo.url}/labels/area%2Fui")) == (404, "not_found")
    assert [label["name"] for label in ok(world.http.get(one))["labels"]] == ["defect"]
    world.label("area/ui")  # made anew, it is on nothing
    assert world.listed(label="area/ui") == []
    assert ok(world.http.delete(f"{one}/labels/defect"))["labels"] == []


def test_who_may_change_labels(world: Tracker) -> None:
    world.label("bug")
    (_, triage), (_, reader), (_, admin) = (world.member(role) for role in ("triage", "read", "admin"))
    bug = f"{world.repo.url}/labels/bug"
    assert code(reader.patch(bug, json={"color": "000000"})) == (403, "forbidden")
    assert ok(triage.patch(bug, json={"color": "000000"}))["color"] == "000000"
    assert code(triage.delete(bug)) == (403, "forbidden")
    assert admin.delete(bug).status_code == 204


def test_labels_are_cloned(world: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    world.label("bug", "docs")
    other = create(world.http, world.who, "copy")
    ok(world.http.post(f"{other.url}/labels", json={"name": "Bug", "color": "123456"}))
    clone, source = f"{other.url}/labels/clone", world.repo.body["full_name"]
    assert ok(world.http.post(clone, json={"source": source.upper()})) == {
        "created": 1,
        "changed": 0,
        "left": 1,
    }
    found = {one["name"]: one["color"] for one in ok(world.http.get(f"{other.url}/labels"))["items"]}
    assert found == {"Bug": "123456", "docs": "ededed"}
    forced = ok(world.http.post(clone, json={"source": source, "force": True}))
    assert forced == {"created": 0, "changed": 1, "left": 1}
    assert "bug" in {one["name"] for one in ok(world.http.get(f"{other.url}/labels"))["items"]}
    stranger = world.account()
    http = world.client(stranger)
    mine = create(http, stranger, "mine")
    hidden = http.post(f"{mine.url}/labels/clone", json={"source": source})
    assert code(hidden) == (422, "invalid")
    missing = http.post(f"{mine.url}/labels/clone", json={"source": "no/such"})
    assert hidden.content.replace(source.encode(), b"no/such") == missing.content
    monkeypatch.setattr("relay.domain.discussion.label.LABELS", 1)
    full = create(world.http, world.who, "full")
    assert code(world.http.post(f"{full.url}/labels/clone", json={"source": source})) == (409, "conflict")
    assert ok(world.http.get(f"{full.url}/labels"))["items"] == []


def test_only_people_with_a_role_are_assigned(world: Tracker) -> None:
    world.publish()
    world.open()
    stranger = ok(world.client(world.account()).post(world.issues, json={"title": "x"}))["author"]["handle"]
    one = f"{world.issues}/1"
    assert code(world.http.patch(one, json={"add_assignees": [stranger]})) == (422, "invalid")
    assert ok(world.http.get(one))["assignees"] == []


# --- comments and reactions


def test_comments(world: Tracker) -> None:
    world.publish()
    world.open()
    one, stranger = f"{world.issues}/1/comments", world.client(world.account())
    first = ok(stranger.post(one, json={"body": "first"}))
    ok(world.http.post(one, json={"body": "second"}))
    page = ok(world.client().get(one, params={"limit": 1}))
    rest = ok(world.client().get(one, params={"limit": 1, "cursor": page["next_cursor"]}))
    assert [item["body"] for item in (*page["items"], *rest["items"])] == ["first", "second"]
    assert rest["next_cursor"] is None
    mine = f"{one}/{first['id']}"
    assert ok(stranger.patch(mine, json={"body": "edited"}))["body"] == "edited"
    other = world.client(world.account())
    assert code(other.patch(mine, json={"body": "x"})) == (403, "forbidden")
    assert code(other.delete(mine)) == (403, "forbidden")
    assert code(world.member("write")[1].delete(mine)) == (403, "forbidden")
    assert ok(world.http.get(f"{world.issues}/1"))["comments"] == 2
    ok(world.http.put(f"{mine}/reactions/tada"))
    assert world.member("admin")[1].delete(mine).status_code == 204
    assert stranger.patch(mine, json={"body": "x"}).status_code == 404
    assert stranger.put(f"{mine}/reactions/tada").status_code == 404
    assert ok(world.http.get(f"{world.issues}/1"))["comments"] == 1
    world.open()
    second = ok(world.client().get(one))["items"][0]["id"]
    assert world.http.patch(f"{world.issues}/2/comments/{second}", json={"body": "x"}).status_code == 404
    for body in ("", " \n", "a\x00", "x" * (limits.ISSUE_BODY_BYTES + 1)):
        assert code(world.http.post(one, json={"body": body})) == (422, "invalid")


def test_one_reaction_of_each_kind_for_each_account(world: Tracker) -> None:
    world.publish()
    world.open()
    one, other = f"{world.issues}/1", world.client(world.account())
    for http in (world.http, world.http, other):
        ok(http.put(f"{one}/reactions/+1"))
    ok(world.http.put(f"{one}/reactions/-1"))
    mine = ok(world.http.get(one))["reactions"]
    assert (mine["+1"], mine["-1"], mine["heart"], mine["viewer"]) == (2, 1, 0, ["+1", "-1"])
    assert ok(world.client().get(one))["reactions"]["viewer"] == []
    left = ok(world.http.delete(f"{one}/reactions/%2B1"))["reactions"]
    assert (left["+1"], left["viewer"]) == (1, ["-1"])
    assert world.http.put(f"{one}/reactions/laugh").status_code == 404
    assert world.client().put(f"{one}/reactions/heart").status_code == 401


# --- limits


def test_without_rate_limits_an_account_posts_what_it_likes(
    world: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "POSTS_STRANGER", 1)
    world.publish()
    http = world.client(world.account())
    for _ in range(3):
        world.open(http)


@pytest.mark.usefixtures("rate_limits")
def test_an_account_posts_so_much_a_minute(world: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "POSTS_STRANGER", 3)
    world.publish()
    http = world.client(world.account())
    world.open(http)
    made = ok(http.post(f"{world.issues}/1/comments", json={"body": "x"}))
    assert http.delete(f"{world.issues}/1/comments/{made['id']}").status_code == 204
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: http.post(world.issues, json={"title": "x"}), range(4)))
    assert sorted(one.status_code for one in answers) == [201, 429, 429, 429]
    assert code(http.post(f"{world.issues}/1/comments", json={"body": "x"})) == (429, "rate_limited")
    world.open()  # members have more


def test_caps(world: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ISSUES", "ISSUE_LABELS", "COMMENTS", "ASSIGNEES"):
        monkeypatch.setattr(limits, name, 1)
    world.label("a", "b")
    world.open(labels=["a"], assignees=["@me"])
    one = f"{world.issues}/1"
    _, member = world.member("write")
    handle = ok(member.post(f"{one}/comments", json={"body": "x"}))["author"]["handle"]
    for answer in (
        world.http.post(world.issues, json={"title": "x"}),
        world.http.put(f"{one}/labels/b"),
        world.http.post(f"{one}/comments", json={"body": "x"}),
        world.http.patch(one, json={"add_assignees": [handle]}),
    ):
        assert code(answer) == (409, "conflict")


def test_a_purged_repository_takes_everything_along(world: Tracker) -> None:
    world.label("bug")
    world.open(labels=["bug"], assignees=["@me"])
    ok(world.http.put(f"{world.issues}/1/reactions/heart"))
    ok(world.http.post(f"{world.issues}/1/comments", json={"body": "x"}))
    names = ("numbering", "subject", "subject_label", "part", "comment", "reaction", "label")

    async def count() -> list[int]:
        async with world.relay.node.db.read() as tx:
            return [
                await tx.value(
                    select(func.count())
                    .select_from(tables[one])
                    .where(tables[one].c.repo_id == world.repo.id)
                )
                for one in names
            ]

    assert world.relay.run(count()) == [1] * len(names)
    ok(world.http.delete(world.repo.url))

    async def purge() -> None:
        async with world.relay.node.db.write() as tx:
            repo = tables["repo"]
            await tx.run(update(repo).where(repo.c.id == world.repo.id).values(purge_at=now_ms() - 1))
        await upkeep.purge_deleted(world.relay.node)

    world.relay.run(purge())
    assert world.relay.run(count()) == [0] * len(names)
