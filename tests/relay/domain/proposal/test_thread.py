"""Threads on lines: where they are, who sees them, what waits, and what suggestions become."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from localstore.core.encoding import b64u, unb64u
from relay.domain.attention import follow
from relay.memory import workers
from tests.relay.conftest import Account, Relay
from tests.relay.histories import ok
from tests.relay.live.copies import Copy
from tests.relay.proposing import LONG, Proposing, code, lines, proposing

MORE = [*LONG, "more"]


@pytest.fixture
def world(relay: Relay, account: Callable[..., Account], client: Callable[..., httpx.Client]) -> Proposing:
    """A proposal of the owner's, #1, that adds line 41 to a.txt."""
    made = proposing(relay, account, client)
    made.propose()
    return made


def begin(world: Proposing, line: int = 41, http: httpx.Client | None = None, **more: Any) -> httpx.Response:
    asked = {
        "path": "a.txt",
        "start": line,
        "end": line,
        "seal_id": world.repo.head("topic"),
        "body": "why?",
        **more,
    }
    return (http or world.http).post(f"{world.url}/1/threads", json=asked)


def threads(world: Proposing, http: httpx.Client | None = None, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ok((http or world.http).get(f"{world.url}/1/threads", params=query))[
        "items"
    ]
    return found


def place(world: Proposing, number: int = 0) -> tuple[Any, ...] | None:
    at = threads(world)[number]["place"]
    return at and (at["path"], at["start"], at["end"], at["how"])


def test_a_thread_begins_on_lines_and_is_answered_and_resolved(world: Proposing) -> None:
    _, reader = world.member("read")
    made = ok(begin(world, 40, reader, end=41))
    assert (made["path"], made["side"], made["start"], made["end"]) == ("a.txt", "new", 40, 41)
    assert made["place"]["how"] == "same"
    url = f"{world.url}/1/threads/{made['id']}"
    answer = ok(world.http.post(f"{url}/comments", json={"body": "because"}))
    (found,) = threads(world)
    assert [one["body"] for one in found["comments"]] == ["why?", "because"]
    proposal = world.get()
    assert (proposal["threads"], proposal["comments"]) == ({"open": 1, "resolved": 0}, 0)
    assert ok(world.http.get(f"{world.repo.url}/issues/1/comments"))["items"] == []
    _, other = world.member("read")
    assert code(other.patch(url, json={"state": "resolved"}))[0] == 403
    assert ok(reader.patch(url, json={"state": "resolved"}))["state"] == "resolved"
    assert world.get()["threads"] == {"open": 0, "resolved": 1}
    assert ok(world.http.patch(url, json={"state": "open"}))["state"] == "open"
    comment = f"{world.repo.url}/issues/1/comments/{answer['id']}"
    ok(world.http.patch(comment, json={"body": "since"}))
    ok(world.http.put(f"{comment}/reactions/heart"))
    assert code(reader.patch(comment, json={"body": "mine"}))[0] == 403
    (found,) = threads(world)
    assert (found["comments"][1]["body"], found["comments"][1]["reactions"]["heart"]) == ("since", 1)
    assert [kind for kind in world.timeline() if kind.startswith("thread.")] == [
        "thread.create", "thread.comment", "thread.resolve", "thread.reopen", "thread.edit",
    ]  # fmt: skip
    for one in found["comments"]:
        assert world.http.delete(f"{world.repo.url}/issues/1/comments/{one['id']}").status_code == 204
    assert threads(world) == []


def test_a_thread_follows_its_lines(world: Proposing) -> None:
    ok(begin(world, 20))
    ok(begin(world, 5))
    world.repo.seal({"a.txt": lines("above", *MORE)}, branch="topic")
    assert place(world) == ("a.txt", 21, 21, "moved")
    edited = [one if n != 19 else "line 19, changed" for n, one in enumerate(MORE)]
    world.repo.seal({"a.txt": lines("above", *edited)}, branch="topic")
    assert place(world) == ("a.txt", 21, 21, "edited")
    world.repo.seal({"a.txt": lines(*MORE)}, branch="topic")
    assert place(world) == ("a.txt", 20, 20, "same")
    world.repo.seal({"a.txt": None, "b.txt": lines("new", *MORE)}, branch="topic")
    assert place(world) == ("b.txt", 21, 21, "moved")
    gone = [one for n, one in enumerate(MORE) if n != 19]
    world.repo.seal({"b.txt": lines("new", *gone)}, branch="topic")
    found = place(world)
    assert found is not None
    assert (found[0], found[3]) == ("b.txt", "edited")
    world.repo.seal({"b.txt": None}, branch="topic")
    assert place(world) is None
    world.repo.seal({"b.txt": lines("new", *MORE)}, branch="topic")
    assert place(world, 1) == ("b.txt", 6, 6, "moved")


def test_texts_that_take_too_long_to_follow_leave_a_thread_without_a_place(
    world: Proposing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lines are looked for again in the next version."""
    ok(begin(world, 20))
    with monkeypatch.context() as patched:
        patched.setattr(workers, "LITTLE", 0)
        patched.setattr(workers, "LONGEST", 0.0)
        world.repo.seal({"a.txt": lines("above", *MORE)}, branch="topic")
        assert place(world) is None
    world.repo.seal({"a.txt": lines("more", "above", *MORE)}, branch="topic")
    assert place(world) == ("a.txt", 22, 22, "moved")


def test_lines_that_moved_to_another_file_are_found_there(world: Proposing) -> None:
    ok(begin(world, 12, end=13))
    kept = [one for n, one in enumerate(MORE) if n not in (11, 12)]
    world.repo.seal({"a.txt": lines(*kept), "c.txt": lines("first", *MORE[11:13])}, branch="topic")
    assert place(world) == ("c.txt", 2, 3, "moved")


def test_a_comment_on_an_old_seal_lands_where_it_belongs_or_says_it_cannot(world: Proposing) -> None:
    old = world.repo.head("topic")
    world.repo.seal({"a.txt": lines("one", "two", *MORE)}, {"a.txt": lines("two", *MORE)}, branch="topic")
    assert ok(begin(world, 41, seal_id=old))["place"]["start"] == 42
    world.repo.seal({"a.txt": None}, branch="topic")
    assert ok(begin(world, 41, seal_id=old))["place"] is None


def test_the_old_side_is_that_of_the_merge_base(world: Proposing) -> None:
    made = ok(begin(world, 40, side="old"))
    assert (made["place"]["seal_id"], made["place"]["start"]) == (world.first, 40)
    assert code(begin(world, 41, side="old")) == (422, "invalid")
    assert code(begin(world, 40, side="old", suggestion="x")) == (422, "invalid")


def test_what_has_no_lines_is_refused(world: Proposing) -> None:
    elsewhere = world.repo.seal({"other.txt": b"1\n"})[0]
    for wrong in (
        {"start": 0},
        {"start": 41, "end": 40},
        {"end": 42},
        {"start": 2**40, "end": 2**40},
        {"path": "missing.txt"},
        {"path": "../a.txt"},
        {"path": "a.txt/"},
        {"path": "\x00"},
        {"seal_id": "0" * 64},
        {"seal_id": elsewhere},
        {"seal_id": "zz"},
        {"body": " "},
        {"body": "x" * 65_537},
        {"body": "é" * 40_000},
        {"suggestion": "é" * 40_000},
        {"suggestion": "\x00"},
    ):
        assert begin(world, **wrong).status_code == 422, wrong
    for id_ in ("nothing", "0" * 26, "..", "%00"):
        url = f"{world.url}/1/threads/{id_}"
        assert world.http.patch(url, json={"state": "resolved"}).status_code in (404, 422), id_
        assert world.http.post(f"{url}/comments", json={"body": "x"}).status_code in (404, 422), id_
    assert (
        ok(begin(world, body="\x1b[31m\u202ered\u200b"))["comments"][0]["body"] == "\x1b[31m\u202ered\u200b"
    )


def test_threads_are_listed_by_state_and_path_in_pages(world: Proposing) -> None:
    made = [ok(begin(world, line))["id"] for line in (3, 5, 7)]
    ok(world.http.patch(f"{world.url}/1/threads/{made[1]}", json={"state": "resolved"}))
    assert [one["id"] for one in threads(world, state="open")] == [made[0], made[2]]
    assert [one["id"] for one in threads(world, state="resolved")] == [made[1]]
    assert threads(world, path="b.txt") == []
    assert len(threads(world, path="a.txt")) == 3
    first = ok(world.http.get(f"{world.url}/1/threads", params={"limit": 2}))
    rest = threads(world, limit=2, cursor=first["next_cursor"])
    assert [one["id"] for one in [*first["items"], *rest]] == made
    assert world.http.get(f"{world.url}/1/threads?cursor=AAAA").status_code == 422


def test_what_waits_is_seen_by_its_author_and_goes_out_with_the_review(world: Proposing) -> None:
    _, writer = world.member("write")
    waiting = ok(begin(world, 41, writer, draft=True))
    answered = ok(begin(world, 1))
    url = f"{world.url}/1/threads"
    ok(writer.post(f"{url}/{answered['id']}/comments", json={"body": "hm", "draft": True}))
    ok(writer.post(f"{url}/{waiting['id']}/comments", json={"body": "and"}))
    assert [one["id"] for one in threads(world)] == [answered["id"]]
    assert len(threads(world)[0]["comments"]) == 1
    assert world.get()["threads"] == {"open": 1, "resolved": 0}
    assert code(world.http.post(f"{url}/{waiting['id']}/comments", json={"body": "x"}))[0] == 404
    comment = waiting["comments"][0]["id"]
    assert (
        code(world.http.patch(f"{world.repo.url}/issues/1/comments/{comment}", json={"body": "x"}))[0] == 404
    )
    assert [one["id"] for one in threads(world, writer, draft="1")] == [waiting["id"]]
    assert [len(one["comments"]) for one in threads(world, writer)] == [2, 2]
    before = world.timeline()
    ok(writer.post(f"{world.url}/1/reviews", json={"verdict": "request_changes"}))
    assert world.timeline()[len(before) :] == ["review.create"]
    assert [len(one["comments"]) for one in threads(world)] == [2, 2]
    assert not any(one["draft"] for one in threads(world))
    assert world.get()["threads"] == {"open": 2, "resolved": 0}
    assert code(writer.post(f"{world.url}/1/reviews", json={"verdict": "comment"}))[0] == 422


def test_protection_asks_for_resolution(world: Proposing) -> None:
    rule = {"require_resolution": True}
    ok(world.http.put(f"{world.repo.url}/protections/main", json=rule))
    made = ok(begin(world))
    assert world.get()["blocked_by"] == ["unresolved_threads"]
    key = world.who.key.id
    asked = {"device_key_id": key, "strategy": "squash"}
    answer = world.http.post(f"{world.url}/1/merge-prepare", json=asked)
    assert code(answer) == (409, "not_mergeable")
    assert answer.json()["blocked_by"] == ["unresolved_threads"]
    ok(world.http.patch(f"{world.url}/1/threads/{made['id']}", json={"state": "resolved"}))
    ok(world.http.post(f"{world.url}/1/merge-prepare", json=asked))


def apply(world: Proposing, *ids: str, **more: Any) -> httpx.Response:
    asked = {"threads": list(ids), "device_key_id": world.who.key.id, **more}
    return world.http.post(f"{world.url}/1/suggestions/prepare", json=asked)


def land(world: Proposing, prepared: dict[str, Any]) -> dict[str, Any]:
    key = world.who.key
    done = {
        "prepare_id": prepared["prepare_id"],
        "device_key_id": key.id,
        "signatures": [b64u(key.sign(unb64u(one["bytes"]))) for one in prepared["seals"]],
    }
    (made,) = ok(world.http.post(f"{world.repo.url}/seals/finalize", json=done))["items"]
    ok(world.http.post(f"{world.repo.url}/seals/finalize", json=done))
    return dict(made)


def test_suggestions_become_one_seal_that_credits_their_authors(world: Proposing) -> None:
    who, reader = world.member("read")
    first = ok(begin(world, 2, reader, suggestion="second\r\nand a half"))["id"]
    last = ok(begin(world, 41, reader, suggestion=""))["id"]
    world.repo.seal({"a.txt": lines("above", *MORE)}, branch="topic")
    made = land(world, ok(apply(world, first, last)))
    assert made["message"] == f"Apply 2 suggestions to #1\n\nCo-authored-by: {who.handle}"
    text = world.http.get(f"{world.repo.url}/raw/{made['id']}/a.txt").content
    assert text == lines("above", LONG[0], "second", "and a half", *LONG[2:])
    for one in threads(world):
        assert (one["state"], one["suggestion"]["applied_seal"]) == ("resolved", made["id"])
    assert code(apply(world, first))[0] == 409


def test_suggestions_that_moved_or_overlap_are_refused(world: Proposing) -> None:
    one = ok(begin(world, 2, end=3, suggestion="x"))["id"]
    other = ok(begin(world, 3, suggestion="y"))["id"]
    assert code(apply(world, one, other)) == (409, "suggestions_overlap")
    assert code(apply(world, ok(begin(world))["id"])) == (409, "conflict")
    assert code(apply(world, "nothing"))[0] == 404
    assert code(apply(world, one, expected_head="0" * 64)) == (409, "head_moved")
    edited = ["line 0", "line 1", "changed", *MORE[3:]]
    prepared = ok(apply(world, one))
    world.repo.seal({"a.txt": lines(*edited)}, branch="topic")
    assert code(apply(world, other)) == (409, "suggestion_moved")
    key = world.who.key
    late = {
        "prepare_id": prepared["prepare_id"],
        "device_key_id": key.id,
        "signatures": [b64u(key.sign(unb64u(prepared["seals"][0]["bytes"])))],
    }
    assert code(world.http.post(f"{world.repo.url}/seals/finalize", json=late)) == (409, "stale_head")
    ok(world.http.put(f"{world.repo.url}/protections/topic", json={"lock_writes": True}))
    fresh = ok(begin(world, 9, suggestion="z"))["id"]
    assert apply(world, fresh).json()["code"] == "branch_protected"


@pytest.fixture
def partly(world: Proposing) -> Iterator[Proposing]:
    """The same, with a thread on a private path, read by everybody."""
    world.repo.seal({"vault/plan.txt": b"planned\nagain\n", "shown.txt": b"1\n"}, branch="topic")
    ok(world.http.put(f"{world.repo.url}/paths", json={"path": "vault", "visibility": "private"}))
    world.publish()
    yield world


def test_nobody_hears_of_threads_on_hidden_paths(partly: Proposing) -> None:
    world = partly
    named, reader = world.member("read")
    _, writer = world.member("write")
    hidden = ok(begin(world, 1, path="vault/plan.txt", body=f"whispered to @{named.handle}"))
    shown = ok(begin(world, 1, path="shown.txt"))
    assert [one["id"] for one in threads(world, reader)] == [shown["id"]]
    assert threads(world, reader, path="vault/plan.txt") == []
    assert world.get(http=reader)["threads"] == {"open": 1, "resolved": 0}
    assert world.get(http=writer)["threads"] == {"open": 2, "resolved": 0}
    url = f"{world.url}/1/threads"
    missing = reader.post(f"{url}/nothing/comments", json={"body": "x"})
    there = reader.post(f"{url}/{hidden['id']}/comments", json={"body": "x"})
    assert (missing.status_code, _said(missing)) == (there.status_code, _said(there)) == (404, _said(there))
    comment = f"{world.repo.url}/issues/1/comments/{hidden['comments'][0]['id']}"
    assert reader.put(f"{comment}/reactions/heart").status_code == 404
    asked = {"start": 1, "end": 1, "http": reader}
    paths = ("vault/plan.txt", "vault/none.txt")
    refused = [str(_said(begin(world, **asked, path=path))).replace(path, "PATH") for path in paths]
    assert refused[0] == refused[1] and "PATH" in refused[0]
    told = ok(reader.get(f"{world.repo.url}/issues/1/timeline"))["items"]
    assert not any(one["kind"].startswith("thread.") for one in told)
    # A thread whose lines moved out of sight is out of sight.
    moved = {"shown.txt": None, "vault/shown.txt": b"1\n"}
    world.repo.seal(moved, branch="topic")
    assert [one["place"]["path"] for one in threads(world, writer)] == ["vault/plan.txt", "vault/shown.txt"]
    assert threads(world, reader) == []
    assert world.get(http=reader)["threads"] == {"open": 0, "resolved": 0}


def _said(answer: httpx.Response) -> dict[str, Any]:
    return {name: value for name, value in answer.json().items() if name not in ("request_id", "instance")}


def inbox(world: Proposing, http: httpx.Client) -> list[str]:
    """Reasons in somebody's inbox, once what happened has reached it."""
    followers = world.relay.node.followers
    for name in ("access", follow.NAME):
        while world.relay.run(followers.handle_next(name)):
            pass
    return [one["reason"] for one in ok(http.get("/api/v1/inbox"))["items"]]


def test_who_is_named_on_lines_hears_of_it_once_and_when_it_goes_out(world: Proposing) -> None:
    named, reader = world.member("read")
    _, writer = world.member("write")
    crowd = " ".join(f"@nobody{n}" for n in range(1000))
    ok(begin(world, 1, body=f"{crowd} @{named.handle}"))
    assert inbox(world, reader) == []
    for line in (2, 3):
        ok(begin(world, line, writer, body=f"look, @{named.handle}", draft=True))
    assert inbox(world, reader) == []
    before = inbox(world, world.http)
    ok(writer.post(f"{world.url}/1/reviews", json={"verdict": "comment"}))
    assert inbox(world, reader) == ["mention"]
    assert len(inbox(world, world.http)) == len(before) + 1


def test_nobody_is_told_of_comments_on_hidden_paths(partly: Proposing) -> None:
    world = partly
    named, reader = world.member("read")
    trusted, writer = world.member("write")
    assert reader.put(f"{world.repo.url}/watch").status_code == 204
    ok(reader.post(f"{world.repo.url}/issues/1/comments", json={"body": "I take part"}))
    text = f"@{named.handle} @{trusted.handle}"
    ok(begin(world, 1, path="vault/plan.txt", body=text))
    _, another = world.member("write")
    ok(begin(world, 2, another, path="vault/plan.txt", body=text, draft=True))
    assert inbox(world, reader) == []
    assert inbox(world, writer) == ["mention"]
    seen = world.get(http=reader)["updated_at"]
    ok(another.post(f"{world.url}/1/reviews", json={"verdict": "comment"}))
    assert inbox(world, reader) == ["participant"]  # of the review, whose text is empty
    assert world.get(http=reader)["updated_at"] >= seen


def live(world: Proposing, number: int = 0, http: httpx.Client | None = None) -> tuple[Any, ...] | None:
    at = threads(world, http, live="1")[number]["live"]
    return at and (at["path"], at["start"], at["end"], at["how"])


def test_a_thread_follows_its_lines_on_the_live_frontier(world: Proposing) -> None:
    _, reader = world.member("read")
    ok(begin(world, 20))
    ok(begin(world, 5, end=8))
    copy = Copy(world.relay, world.who, world.repo.id, "topic")
    assert live(world) is None, "nothing is unsealed"
    copy.post(copy.edit("a.txt", lines("above", *MORE)))
    assert live(world) == ("a.txt", 21, 21, "moved")
    assert place(world) == ("a.txt", 20, 20, "same"), "the newest version has not moved"
    assert live(world, http=reader) is None, "edits that are not sealed are for those who may write"
    copy.catch_up()
    edited = [one if n != 19 else "line 19, changed" for n, one in enumerate(MORE)]
    copy.post(copy.edit("a.txt", lines("above", *edited)))
    assert live(world) == ("a.txt", 21, 21, "edited")
    copy.catch_up()
    copy.post(copy.delete("a.txt"), copy.create("b.txt", lines("new", *MORE[:10])))
    assert live(world) == ("a.txt", 20, 20, "gone")
    assert live(world, 1) == ("b.txt", 6, 9, "moved")


def test_what_waits_can_be_discarded(world: Proposing) -> None:
    waiting = ok(begin(world, 41, draft=True))
    shown = ok(begin(world, 1))
    url = f"{world.url}/1/threads/{shown['id']}/comments"
    more = ok(world.http.post(url, json={"body": "hm", "draft": True}))
    before = world.timeline()
    for one in (waiting["comments"][0], more):
        assert world.http.delete(f"{world.repo.url}/issues/1/comments/{one['id']}").status_code == 204
    (left,) = threads(world)
    assert (left["id"], len(left["comments"])) == (shown["id"], 1)
    assert world.timeline() == before, "nobody heard of it"
