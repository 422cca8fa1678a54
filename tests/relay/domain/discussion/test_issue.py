"""Issues: one sequence of numbers, rights of authors and of triage, filters."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from localstore.core.model import limits
from tests.depth import rounds
from tests.relay.histories import create, ok
from tests.relay.tracker import Tracker, code, world
from tests.relay.watching.statements import statements_of_requests

__all__ = ["world"]  # the fixture

# --- numbers


def test_many_at_once_are_numbered_from_one(world: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "POSTS_MEMBER", 1000)
    many = rounds(60, 200)
    with ThreadPoolExecutor(20) as threads:
        made = list(threads.map(lambda n: world.open(title=f"t{n}"), range(many)))
    assert sorted(one["number"] for one in made) == list(range(1, many + 1))
    seen, query = [], {"limit": many // 2}
    while True:
        page = ok(world.http.get(world.issues, params=query))
        seen += [(one["number"], one["title"]) for one in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert seen == sorted(((one["number"], one["title"]) for one in made), reverse=True)


def test_a_refused_issue_takes_no_number(world: Tracker) -> None:
    assert code(world.http.post(world.issues, json={"title": "x", "labels": ["none"]})) == (422, "invalid")
    assert world.open()["number"] == 1
    other = create(world.http, world.who, "other")
    assert ok(world.http.post(f"{other.url}/issues", json={"title": "x"}))["number"] == 1


def test_the_timeline_names_who_was_assigned_and_the_labels(world: Tracker) -> None:
    world.label("bug")
    world.open(labels=["bug"], assignees=["@me"])
    one = f"{world.issues}/1"
    ok(world.http.patch(one, json={"remove_assignees": ["@me"], "remove_labels": ["bug"]}))
    events = ok(world.http.get(f"{one}/timeline", params={"limit": 2}))
    items, query = events["items"], {"limit": 2, "cursor": events["next_cursor"]}
    while query["cursor"]:
        events = ok(world.http.get(f"{one}/timeline", params=query))
        items, query["cursor"] = items + events["items"], events["next_cursor"]
    said = {item["kind"]: (item["person"], item["data"].get("name")) for item in items}
    me = {"id": world.who.id, "handle": world.who.handle, "kind": "user"}
    assert said == {
        "issue.create": (None, None),
        "issue.label": (None, "bug"),
        "issue.assign": (me, None),
        "issue.unlabel": (None, "bug"),
        "issue.unassign": (me, None),
    }


# --- what it is, and what it may be


def test_opened_read_closed_and_reopened(world: Tracker) -> None:
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
def test_a_number_that_is_none_is_missing(world: Tracker, number: str) -> None:
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
def test_what_no_issue_may_be_is_refused(world: Tracker, body: dict[str, Any]) -> None:
    assert code(world.http.post(world.issues, json=body)) == (422, "invalid")
    assert world.listed() == []


@pytest.mark.parametrize(
    "text",
    ["\u202egnp.exe", "\x1b[2J", "[a](javascript:alert(1))", "<script>", "x" * limits.ISSUE_BODY_BYTES],
)
def test_text_is_kept_as_it_was_written(world: Tracker, text: str) -> None:
    assert world.open(body=text)["body"] == text
    comment = ok(world.http.post(f"{world.issues}/1/comments", json={"body": text}))
    assert ok(world.http.get(f"{world.issues}/1/comments"))["items"] == [comment]
    assert comment["body"] == text


# --- who may


def test_strangers_open_and_keep_what_they_wrote(world: Tracker) -> None:
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


def test_triage_sorts_and_edits_nobody_elses_text(world: Tracker) -> None:
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


def test_an_archived_repository_is_read_only(world: Tracker) -> None:
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


def test_filters(world: Tracker) -> None:
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
        ({"search": "%"}, []),
        ({"search": "a_b"}, [3, 1]),
        ({"search": "b 100"}, [1]),
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


def test_a_search_finds_what_has_all_words(world: Tracker) -> None:
    texts = [
        "Parser: ends at NUL",
        "the parser ends\nin read_me",
        "日本語の題",
        "ends",
        "x" * 300,
        "parser parser",
    ]
    for text in texts:
        world.open(title=text.split("\n")[0][:250], body=text)
    ok(world.http.patch(f"{world.issues}/4", json={"state": "closed"}))
    ok(world.http.patch(f"{world.issues}/6", json={"title": "Lexer", "body": ""}))
    for search, numbers in (
        ("PARSER ends", [2, 1]),
        ("ends parser, ends!", [2, 1]),
        ("read", [2]),
        ("本", [3]),
        ("pars", []),
        ("parser nowhere", []),
        ("ends", [2, 1]),
        ("lexer", [6]),
        ("x" * 80, [5]),
        (" ".join(f"w{n}" for n in range(30)), []),
    ):
        assert world.listed(search=search) == numbers, search
    assert world.listed(search="ends", state="all") == [4, 2, 1]
    assert world.listed(search="ends", state="closed") == [4]
    ok(world.http.patch(f"{world.issues}/4", json={"state": "open"}))
    assert world.listed(search="ends") == [4, 2, 1]
    other = create(world.http, world.who, "elsewhere")
    assert ok(world.http.get(f"{other.url}/issues", params={"search": "ends"}))["items"] == []


@pytest.mark.parametrize(
    "search",
    ['"', "'", "(", "NEAR(a b)", "a* OR b", "-a", "a AND NOT b", "\\", "%_", "\u202e", "a:b", "{}", "^a"],
)
def test_a_search_has_no_language(world: Tracker, search: str) -> None:
    world.open(title="nothing of it")
    assert world.listed(search=search) == []


def test_a_page_is_a_fixed_number_of_statements(world: Tracker) -> None:
    world.label("bug")
    pages: list[list[str]] = []
    for _ in range(2):
        for _ in range(8):
            number = world.open(labels=["bug"], assignees=["@me"])["number"]
            ok(world.http.put(f"{world.issues}/{number}/reactions/eyes"))
        with statements_of_requests(world.relay) as ran:
            world.listed()
        pages.append(ran)
    assert pages[0] == pages[1]
    assert 4 <= len(ran) <= 8
