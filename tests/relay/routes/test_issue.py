"""Issues: one sequence of numbers, rights of authors and of triage, filters, comments, reactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from sqlalchemy import func, insert, select, update

from localstore.core import limits
from relay.base.clock import now_ms
from relay.db.schema import tables
from relay.service import upkeep
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok


@dataclass
class World:
    relay: Relay
    who: Account
    http: httpx.Client
    repo: Repository
    account: Callable[..., Account]
    client: Callable[..., httpx.Client]

    @property
    def issues(self) -> str:
        return f"{self.repo.url}/issues"

    def open(self, http: httpx.Client | None = None, **body: Any) -> dict[str, Any]:
        made: dict[str, Any] = ok((http or self.http).post(self.issues, json={"title": "a title", **body}))
        return made

    def listed(self, http: httpx.Client | None = None, **query: Any) -> list[int]:
        return [one["number"] for one in ok((http or self.http).get(self.issues, params=query))["items"]]

    def label(self, *names: str) -> None:
        for name in names:
            ok(self.http.post(f"{self.repo.url}/labels", json={"name": name}))

    def member(self, role: str) -> tuple[Account, httpx.Client]:
        who = self.account()

        async def act() -> None:
            async with self.relay.node.db.write() as tx:
                await tx.run(
                    insert(tables["collaborator"]),
                    repo_id=self.repo.id,
                    account_id=who.id,
                    role=role,
                    created_at=now_ms(),
                )

        self.relay.run(act())
        return who, self.client(who)

    def publish(self) -> None:
        ok(self.http.patch(self.repo.url, json={"visibility": "public"}))


@pytest.fixture
def world(
    relay: Relay, account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> Iterator[World]:
    who = account()
    http = client(who)
    yield World(relay, who, http, create(http, who, "tracked"), account, client)


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


# --- numbers


def test_two_hundred_at_once_are_one_to_two_hundred(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "POSTS_MEMBER", 1000)
    with ThreadPoolExecutor(20) as threads:
        made = list(threads.map(lambda n: world.open(title=f"t{n}"), range(200)))
    assert sorted(one["number"] for one in made) == list(range(1, 201))
    seen, query = [], {"limit": 100}
    while True:
        page = ok(world.http.get(world.issues, params=query))
        seen += [(one["number"], one["title"]) for one in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert seen == sorted(((one["number"], one["title"]) for one in made), reverse=True)


def test_a_refused_issue_takes_no_number(world: World) -> None:
    assert code(world.http.post(world.issues, json={"title": "x", "labels": ["none"]})) == (422, "invalid")
    assert world.open()["number"] == 1
    other = create(world.http, world.who, "other")
    assert ok(world.http.post(f"{other.url}/issues", json={"title": "x"}))["number"] == 1


# --- what it is, and what it may be


def test_opened_read_closed_and_reopened(world: World) -> None:
    made = world.open(title="It ends", body="after\nan hour")
    assert (made["state"], made["state_reason"], made["closed_at"]) == ("open", None, None)
    assert made["author"]["id"] == world.who.id
    assert made["reactions"] == {
        "+1": 0, "-1": 0, "tada": 0, "heart": 0, "rocket": 0, "eyes": 0, "viewer": [],
    }  # fmt: skip
    one = f"{world.issues}/1"
    assert ok(world.http.get(one)) == made
    closed = ok(world.http.patch(one, json={"state": "closed", "state_reason": "not_planned"}))
    assert (closed["state"], closed["state_reason"]) == ("closed", "not_planned")
    assert closed["closed_at"]
    assert (world.listed(), world.listed(state="closed"), world.listed(state="all")) == ([], [1], [1])
    edited = ok(world.http.patch(one, json={"title": "It stops", "body": ""}))
    assert (edited["title"], edited["body"], edited["closed_at"]) == ("It stops", "", closed["closed_at"])
    again = ok(world.http.patch(one, json={"state": "open"}))
    assert (again["state"], again["state_reason"], again["closed_at"]) == ("open", None, None)
    assert code(world.http.patch(one, json={"state_reason": "completed"})) == (422, "invalid")


@pytest.mark.parametrize("number", ["0", "2", "01", "-1", "x", "1.0", "9" * 19, "9" * 400, "%F0%9F%98%80"])
def test_a_number_that_is_none_is_missing(world: World, number: str) -> None:
    world.open()
    missing = world.http.get("/api/v1/repos/0190a1b2c3d47e8f9a0b/issues/1")
    answer = world.http.get(f"{world.issues}/{number}")
    assert (answer.status_code, answer.content) == (404, missing.content)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"title": ""},
        {"title": "  "},
        {"title": "a\nb"},
        {"title": "a\x00"},
        {"title": "a\n"},
        {"title": "\u2028"},
        {"title": "x" * 257},
        {"title": "x", "body": "a\x00b"},
        {"title": "x", "body": "x" * (limits.ISSUE_BODY_BYTES + 1)},
        {"title": "x", "body": "ä" * (limits.ISSUE_BODY_BYTES // 2 + 1)},
        {"title": "x", "labels": [".."]},
        {"title": "x", "assignees": ["a"] * 11},
        {"title": "x", "assignees": ["nobody-of-this-name"]},
    ],
)
def test_what_no_issue_may_be_is_refused(world: World, body: dict[str, Any]) -> None:
    assert code(world.http.post(world.issues, json=body)) == (422, "invalid")
    assert world.listed() == []


@pytest.mark.parametrize(
    "text",
    ["\u202egnp.exe", "\x1b[2J", "[a](javascript:alert(1))", "<script>", "x" * limits.ISSUE_BODY_BYTES],
)
def test_text_is_kept_as_it_was_written(world: World, text: str) -> None:
    assert world.open(body=text)["body"] == text
    comment = ok(world.http.post(f"{world.issues}/1/comments", json={"body": text}))
    assert ok(world.http.get(f"{world.issues}/1/comments"))["items"] == [comment]
    assert comment["body"] == text


# --- who may


def test_strangers_open_and_keep_what_they_wrote(world: World) -> None:
    world.label("bug")
    stranger, other = world.client(world.account()), world.client(world.account())
    assert stranger.get(world.issues).status_code == 404
    assert stranger.post(world.issues, json={"title": "x"}).status_code == 404
    world.publish()
    made = world.open(stranger, title="mine")
    one = f"{world.issues}/{made['number']}"
    assert world.client().get(one).json() == made
    assert world.client().get(f"{one}/comments").json()["items"] == []
    assert world.client().post(world.issues, json={"title": "x"}).status_code == 401
    assert ok(stranger.patch(one, json={"title": "still mine"}))["title"] == "still mine"
    assert ok(stranger.patch(one, json={"state": "closed"}))["state"] == "closed"
    for refused in (
        stranger.patch(one, json={"add_labels": ["bug"]}),
        stranger.patch(one, json={"title": "x", "add_assignees": ["@me"]}),
        stranger.put(f"{one}/labels/bug"),
        stranger.delete(f"{one}/labels/bug"),
        stranger.post(world.issues, json={"title": "x", "labels": ["bug"]}),
        stranger.post(world.issues, json={"title": "x", "assignees": ["@me"]}),
        other.patch(one, json={"title": "x"}),
        other.patch(one, json={"state": "open"}),
    ):
        assert code(refused) == (403, "forbidden")
    assert ok(world.http.get(one))["title"] == "still mine"
    assert world.listed(state="all") == [1]


def test_triage_sorts_and_edits_nobody_elses_text(world: World) -> None:
    world.label("bug")
    made = world.open()
    _, http = world.member("triage")
    one = f"{world.issues}/{made['number']}"
    assert code(http.patch(one, json={"title": "x"})) == (403, "forbidden")
    sorted_out = ok(
        http.patch(one, json={"state": "closed", "add_labels": ["bug"], "add_assignees": ["@me"]})
    )
    assert (sorted_out["state"], [label["name"] for label in sorted_out["labels"]]) == ("closed", ["bug"])
    assert len(sorted_out["assignees"]) == 1
    _, admin = world.member("admin")
    assert ok(admin.patch(one, json={"title": "said better"}))["title"] == "said better"
    _, reader = world.member("read")
    assert code(reader.patch(one, json={"state": "open"})) == (403, "forbidden")


def test_an_archived_repository_is_read_only(world: World) -> None:
    world.open()
    ok(world.http.patch(world.repo.url, json={"archived": True}))
    one = f"{world.issues}/1"
    for answer in (
        world.http.post(world.issues, json={"title": "x"}),
        world.http.patch(one, json={"state": "closed"}),
        world.http.post(f"{one}/comments", json={"body": "x"}),
        world.http.put(f"{one}/reactions/heart"),
    ):
        assert code(answer) == (409, "repository_archived")
    assert world.listed() == [1]


# --- lists


def test_filters(world: World) -> None:
    world.label("bug", "Docs")
    _, theirs = world.member("write")
    world.open(title="100% of A_B", labels=["bug"], assignees=["@me"])
    world.open(theirs, title="Über alles", labels=["BUG", "docs"])
    world.open(title="a%b")
    ok(theirs.post(f"{world.issues}/3/comments", json={"body": "x"}))
    ok(world.http.patch(f"{world.issues}/2", json={"state": "closed"}))
    handle = ok(world.http.get(f"{world.issues}/2"))["author"]["handle"]
    for query, numbers in (
        ({"author": "@me"}, [3, 1]),
        ({"author": handle.upper(), "state": "all"}, [2]),
        ({"author": "nobody-of-this-name"}, []),
        ({"label": "Bug"}, [1]),
        ({"label": "bug", "state": "all"}, [2, 1]),
        ({"label": "docs", "state": "closed"}, [2]),
        ({"assignee": "@me"}, [1]),
        ({"search": "ÜBER", "state": "all"}, [2]),
        ({"search": "%"}, [3, 1]),
        ({"search": "a_b"}, [1]),
        ({"search": "a", "label": "bug", "author": "@me", "assignee": "@me", "state": "all"}, [1]),
        ({"involves": "@me", "state": "all"}, [3, 1]),
    ):
        assert world.listed(**query) == numbers, query
    assert world.listed(theirs, involves="@me", state="all") == [3, 2]
    world.publish()
    assert world.listed(world.client(), involves="@me") == []
    for query in ({"state": "merged"}, {"involves": handle}, {"cursor": "x"}, {"search": ""}):
        assert code(world.http.get(world.issues, params=query)) == (422, "invalid")
    ok(world.http.patch(f"{world.issues}/1", json={"remove_assignees": ["@me"], "remove_labels": ["bug"]}))
    assert (world.listed(assignee="@me"), world.listed(label="bug")) == ([], [])


def test_a_page_is_a_fixed_number_of_statements(world: World) -> None:
    """The least of five pages: jobs and followers of the node run statements of their own beside them."""
    from relay.db.engine import sqlite

    if world.relay.node.db.dialect != "sqlite":
        pytest.skip("counted where every statement passes one function")
    world.label("bug")
    counts: list[int] = []
    for _ in range(2):
        for _ in range(8):
            number = world.open(labels=["bug"], assignees=["@me"])["number"]
            ok(world.http.put(f"{world.issues}/{number}/reactions/eyes"))
        pages = []
        for _ in range(5):
            ran: list[str] = []
            with pytest.MonkeyPatch.context() as patch:
                for name in ("all", "one", "value"):
                    _counting(patch, sqlite, name, ran)
                world.listed()
            pages.append(len(ran))
        counts.append(min(pages))
    assert counts[0] == counts[1]
    assert 4 <= counts[0] <= 8


def _counting(patch: pytest.MonkeyPatch, module: Any, name: str, ran: list[str]) -> None:
    for owner in (one for one in vars(module).values() if isinstance(one, type) and name in vars(one)):
        real = vars(owner)[name]

        def spy(self: Any, *args: Any, _real: Any = real, **values: Any) -> Any:
            ran.append(name)
            return _real(self, *args, **values)

        patch.setattr(owner, name, spy)


# --- labels and people on issues


def test_labels_on_issues_follow_the_label(world: World) -> None:
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


def test_who_may_change_labels(world: World) -> None:
    world.label("bug")
    (_, triage), (_, reader), (_, admin) = (world.member(role) for role in ("triage", "read", "admin"))
    bug = f"{world.repo.url}/labels/bug"
    assert code(reader.patch(bug, json={"color": "000000"})) == (403, "forbidden")
    assert ok(triage.patch(bug, json={"color": "000000"}))["color"] == "000000"
    assert code(triage.delete(bug)) == (403, "forbidden")
    assert admin.delete(bug).status_code == 204


def test_labels_are_cloned(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr("relay.service.label.LABELS", 1)
    full = create(world.http, world.who, "full")
    assert code(world.http.post(f"{full.url}/labels/clone", json={"source": source})) == (409, "conflict")
    assert ok(world.http.get(f"{full.url}/labels"))["items"] == []


def test_only_people_with_a_role_are_assigned(world: World) -> None:
    world.publish()
    world.open()
    stranger = ok(world.client(world.account()).post(world.issues, json={"title": "x"}))["author"]["handle"]
    one = f"{world.issues}/1"
    assert code(world.http.patch(one, json={"add_assignees": [stranger]})) == (422, "invalid")
    assert ok(world.http.get(one))["assignees"] == []


# --- comments and reactions


def test_comments(world: World) -> None:
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


def test_one_reaction_of_each_kind_for_each_account(world: World) -> None:
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


def test_an_account_posts_so_much_a_minute(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_caps(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_purged_repository_takes_everything_along(world: World) -> None:
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
        await upkeep.purge(world.relay.node)

    world.relay.run(purge())
    assert world.relay.run(count()) == [0] * len(names)
