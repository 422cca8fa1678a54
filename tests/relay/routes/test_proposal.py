"""Proposals: numbers, rights, versions, and what happens when their branches move or go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec
import pytest
from sqlalchemy import insert, update

from localstore.core import limits
from localstore.core.model.proposal import Proposal
from relay.base.clock import now_ms
from relay.db.schema import tables
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, compared, create, ok


@dataclass
class World:
    relay: Relay
    who: Account
    http: httpx.Client
    repo: Repository
    account: Callable[..., Account]
    client: Callable[..., httpx.Client]
    first: str

    @property
    def url(self) -> str:
        return f"{self.repo.url}/proposals"

    def branch(self, name: str, *contents: bytes, start: str = "main") -> list[str]:
        """A branch with a seal for each content of `a.txt`."""
        self.repo.branch(name, start)
        return self.repo.seal(*({"a.txt": one} for one in contents), branch=name) if contents else []

    def propose(self, head: str = "topic", http: httpx.Client | None = None, **body: Any) -> dict[str, Any]:
        wish = {"head": head, "base": "main", "title": "a title", **body}
        made: dict[str, Any] = ok((http or self.http).post(self.url, json=wish))
        return made

    def get(self, number: int = 1, http: httpx.Client | None = None) -> dict[str, Any]:
        found: dict[str, Any] = ok((http or self.http).get(f"{self.url}/{number}"))
        return found

    def patch(self, number: int = 1, http: httpx.Client | None = None, **body: Any) -> httpx.Response:
        return (http or self.http).patch(f"{self.url}/{number}", json=body)

    def listed(self, http: httpx.Client | None = None, **query: Any) -> list[int]:
        return [one["number"] for one in ok((http or self.http).get(self.url, params=query))["items"]]

    def versions(self, number: int = 1) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = ok(self.http.get(f"{self.url}/{number}/versions"))["items"]
        return found

    def timeline(self, number: int = 1) -> list[str]:
        items = ok(self.http.get(f"{self.repo.url}/issues/{number}/timeline"))["items"]
        return [one["kind"] for one in items]

    def member(self, role: str) -> tuple[Account, httpx.Client]:
        who = self.account()
        values = {"account_id": who.id, "role": role, "created_at": now_ms()}
        self.run(insert(tables["collaborator"]), repo_id=self.repo.id, **values)
        return who, self.client(who)

    def run(self, statement: Any, **values: Any) -> None:
        async def act() -> None:
            async with self.relay.node.db.write() as tx:
                await tx.run(statement, **values)

        self.relay.run(act())

    def publish(self) -> None:
        ok(self.http.patch(self.repo.url, json={"visibility": "public"}))


def _lines(*words: str) -> bytes:
    return "".join(f"{word}\n" for word in words).encode()


LONG = [f"line {n}" for n in range(40)]


@pytest.fixture
def world(
    relay: Relay, account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> Iterator[World]:
    who = account()
    http = client(who)
    repo = create(http, who, "proposed")
    (first,) = repo.seal({"a.txt": _lines(*LONG)})
    made = World(relay, who, http, repo, account, client, first)
    made.branch("topic", _lines(*LONG, "more"))
    yield made


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


# --- numbers and creation


def test_issues_and_proposals_share_one_sequence_under_load(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "POSTS_MEMBER", 1000)
    (seal,) = world.branch("start", b"another\n")
    for n in range(100):
        world.repo.branch(f"topic{n}", seal)

    def make(n: int) -> int:
        if n % 2:
            return int(ok(world.http.post(f"{world.repo.url}/issues", json={"title": f"t{n}"}))["number"])
        return int(world.propose(f"topic{n // 2}", title=f"t{n}")["number"])

    with ThreadPoolExecutor(20) as threads:
        assert sorted(threads.map(make, range(200))) == list(range(1, 201))
    assert len(world.listed(limit=100)) == 100


def test_what_a_proposal_is(world: World) -> None:
    made = world.propose(title="More", body="It closes #2, fixes  #3 and resolves #99.", draft=True)
    for title in ("two", "three"):
        ok(world.http.post(f"{world.repo.url}/issues", json={"title": title}))
    found = world.get()
    assert (found["number"], found["state"], found["draft"], found["version"]) == (1, "open", True, 1)
    msgspec.convert(found, Proposal)  # as the client reads it
    assert (found["head"], found["base"]) == ("topic", "main")
    assert (found["head_seal"], found["base_seal"]) == (world.repo.head("topic"), world.first)
    assert found["closes"] == [2, 3]
    assert found["head_repo"]["id"] == world.repo.id
    assert (made["merge_state"], found["merge_state"]) == ("draft", "draft")
    assert ok(world.patch(draft=False))["merge_state"] == "clean"
    assert ok(world.patch(body="nothing"))["closes"] == []
    assert world.timeline() == ["proposal.create", "proposal.ready", "proposal.edit"]


@pytest.mark.parametrize(
    ("wish", "pointer"),
    [
        ({"head": "main"}, "/base"),
        ({"head": "none"}, "/head"),
        ({"base": "none"}, "/base"),
        ({"head": "x" * 300}, "/head"),
        ({"title": " "}, "/title"),
        ({"title": "two\nlines"}, "/title"),
        ({"title": "\x1b[2J"}, "/title"),
        ({"body": "nul \0"}, "/body"),
        ({"body": "ü" * 40_000}, "/body"),
        ({"reviewers": ["nobody-here"]}, "/reviewers"),
        ({"reviewers": ["@me"]}, "/reviewers"),
        ({"assignees": ["nobody-here"]}, "/assignees"),
    ],
)
def test_a_wrong_wish_is_refused_and_takes_no_number(
    world: World, wish: dict[str, Any], pointer: str
) -> None:
    answer = world.http.post(world.url, json={"head": "topic", "base": "main", "title": "t", **wish})
    assert code(answer) == (422, "invalid")
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert world.propose()["number"] == 1


def test_texts_of_strangers_stay_as_they_are(world: World) -> None:
    text = "\u202eevil <script>alert(1)</script> [x](javascript:alert(1)) @a\x07"
    made = world.propose(title="\u202e title", body=text)
    assert (made["title"], made["body"]) == ("\u202e title", text)


def test_a_branch_is_proposed_once_and_only_with_news(world: World) -> None:
    world.repo.branch("same", "main")
    wish = {"head": "same", "base": "main", "title": "t"}
    assert code(world.http.post(world.url, json=wish)) == (409, "nothing_proposed")
    world.propose()
    again = world.http.post(world.url, json={**wish, "head": "topic"})
    assert (code(again), again.json()["number"]) == ((409, "proposal_exists"), 1)
    ok(world.patch(state="closed"))
    assert world.propose()["number"] == 2
    assert code(world.patch(1, state="open")) == (409, "proposal_exists")


# --- versions


def test_each_head_is_a_version_and_the_change_has_an_identity(world: World) -> None:
    world.propose()
    world.repo.seal({"a.txt": _lines(*LONG, "more", "still more")}, branch="topic")
    one, two = world.versions()
    assert [one["n"], two["n"]] == [1, 2]
    assert two["head"] == world.repo.head("topic")
    assert {one["merge_base"], two["merge_base"]} == {world.first}
    assert one["change_id"] != two["change_id"]
    assert "proposal.push" in world.timeline()
    assert world.get()["head_seal"] == two["head"]


def test_a_rebased_change_keeps_its_id(world: World) -> None:
    world.propose()
    (moved,) = world.repo.seal({"a.txt": _lines("first", *LONG), "b.txt": b"1\n"})
    assert world.get()["merge_state"] == "behind"
    world.branch("again", _lines("first", *LONG, "more"))
    head = world.repo.head("again")
    was = world.repo.head("topic")
    ok(world.http.patch(f"{world.repo.url}/refs/branch/topic", json={"head": head, "expected_head": was}))
    one, two = world.versions()
    assert (one["base"], two["base"]) == (world.first, moved)
    assert (one["merge_base"], two["merge_base"]) == (world.first, moved)
    assert one["change_id"] == two["change_id"]
    assert world.get()["merge_state"] == "clean"


def test_a_proposal_is_a_read_only_ref(world: World) -> None:
    world.propose()
    head = world.repo.head("topic")
    compare = f"{world.repo.url}/compare"
    assert ok(world.http.get(compare, params={"base": "main", "head": "pr:1"}))["head"] == head
    assert ok(world.http.get(f"{world.repo.url}/commits", params={"ref": "pr:1"}))["items"][0]["id"] == head
    started = {"type": "branch", "name": "mine", "head": "pr:1"}
    assert ok(world.http.post(f"{world.repo.url}/refs", json=started))["head"] == head
    for name in ("pr:2", "pr:0", "pr:01", "pr:" + "9" * 18, "pr:x"):
        assert code(world.http.get(compare, params={"base": "main", "head": name})) == (404, "not_found")
    made = world.http.post(f"{world.repo.url}/refs", json={**started, "name": "pr:3"})
    assert code(made) == (422, "invalid")


# --- branches that go


def test_a_deleted_head_closes_and_the_same_head_opens_again(world: World) -> None:
    world.propose()
    head = world.repo.head("topic")
    ok(world.http.get(f"{world.url}/1"))
    assert world.http.delete(f"{world.repo.url}/refs/branch/topic").status_code == 204
    assert world.get()["state"] == "closed"
    assert world.versions()[0]["head"] == head
    refused = world.patch(state="open")
    assert code(refused) == (409, "proposal_branch_gone")
    assert f"svc repo branch topic --from {head}" in refused.json()["detail"]  # type: ignore[index]
    world.repo.branch("topic", world.first)
    assert code(world.patch(state="open")) == (409, "proposal_branch_gone")  # another branch of that name
    assert world.http.delete(f"{world.repo.url}/refs/branch/topic").status_code == 204
    world.repo.branch("topic", head or "")
    assert ok(world.patch(state="open"))["state"] == "open"
    world.repo.seal({"a.txt": b"new\n"}, branch="topic")
    assert len(world.versions()) == 2


def test_what_moved_while_closed_is_a_version_when_it_opens(world: World) -> None:
    world.propose()
    ok(world.patch(state="closed"))
    world.repo.seal({"a.txt": b"1\n"}, {"a.txt": b"2\n"}, branch="topic")
    assert len(world.versions()) == 1
    found = ok(world.patch(state="open"))
    assert (found["version"], found["head_seal"]) == (2, world.repo.head("topic"))


def test_a_deleted_base_closes(world: World) -> None:
    world.branch("lower", b"lower\n")
    world.branch("upper", b"upper\n", start="lower")
    world.propose("lower")
    stacked = world.propose("upper", base="lower")
    assert stacked["depends_on"] == [1]
    assert world.http.delete(f"{world.repo.url}/refs/branch/lower").status_code == 204
    assert (world.get(1)["state"], world.get(2)["state"]) == ("closed", "closed")
    assert code(world.patch(2, state="open")) == (409, "proposal_branch_gone")
    assert ok(world.patch(2, base="main"))["base"] == "main"
    assert ok(world.patch(2, state="open"))["state"] == "open"


def test_what_is_based_on_a_merged_branch_goes_to_its_base(world: World) -> None:
    world.branch("lower", b"lower\n")
    world.branch("upper", b"upper\n", start="lower")
    world.propose("lower")
    world.propose("upper", base="lower")
    for name in ("proposal", "subject"):
        table = tables[name]
        world.run(
            update(table).where(table.c.repo_id == world.repo.id, table.c.number == 1).values(state="merged")
        )
    assert world.http.delete(f"{world.repo.url}/refs/branch/lower").status_code == 204
    found = world.get(2)
    assert (found["state"], found["base"], found["version"]) == ("open", "main", 2)
    assert code(world.patch(1, state="open")) == (409, "proposal_merged")


# --- rights


def test_who_may_what(world: World) -> None:
    world.publish()
    stranger = world.client(world.account())
    made = world.propose(http=stranger)
    assert made["author"]["id"] != world.who.id
    ok(world.patch(http=stranger, title="mine", draft=True, state="closed"))
    other = world.client(world.account())
    _, triage = world.member("triage")
    _, writer = world.member("write")
    _, reader = world.member("read")
    for who in (other, reader):
        for body in ({"title": "x"}, {"state": "open"}, {"draft": False}, {"add_labels": ["x"]}):
            assert code(world.patch(http=who, **body)) == (403, "forbidden"), body
    assert code(world.patch(http=stranger, add_assignees=["@me"])) == (403, "forbidden")
    assert code(world.patch(http=triage, title="x")) == (403, "forbidden")
    assert code(world.patch(http=triage, draft=False)) == (403, "forbidden")
    ok(world.patch(http=triage, state="open"))
    ok(world.patch(http=writer, draft=False))
    assert world.client().get(f"{world.url}/1").status_code == 200


def test_hidden_and_missing_are_the_same(world: World) -> None:
    world.propose()
    stranger = world.client(world.account())
    nowhere = "/api/v1/repos/0190a1b2c3d47e8f9a0b/proposals"
    for method, path, body in (
        ("GET", "", None),
        ("GET", "/1", None),
        ("GET", "/1/versions", None),
        ("GET", "/1/reviews", None),
        ("POST", "", {"head": "topic", "base": "main", "title": "t"}),
        ("PATCH", "/1", {"state": "closed"}),
        ("POST", "/1/reviews", {"verdict": "approve"}),
    ):
        hidden = stranger.request(method, world.url + path, json=body)
        missing = stranger.request(method, nowhere + path, json=body)
        assert hidden.status_code == 404
        assert compared(hidden)[1] == compared(missing)[1], (method, path)


def test_an_issue_is_no_proposal_and_the_reverse(world: World) -> None:
    ok(world.http.post(f"{world.repo.url}/issues", json={"title": "t"}))
    world.propose()
    assert world.http.get(f"{world.url}/1").status_code == 404
    assert world.http.get(f"{world.repo.url}/issues/2").status_code == 404
    assert world.listed() == [2]
    assert [one["number"] for one in ok(world.http.get(f"{world.repo.url}/issues"))["items"]] == [1]


def test_comments_reactions_and_labels(world: World) -> None:
    world.propose()
    talk = f"{world.repo.url}/issues/1"
    made = ok(world.http.post(f"{talk}/comments", json={"body": "a word"}))
    ok(world.http.put(f"{talk}/reactions/heart"))
    ok(world.http.put(f"{talk}/comments/{made['id']}/reactions/eyes"))
    labelled = ok(world.http.put(f"{world.url}/1/labels/bug?create=1"))
    assert [one["name"] for one in labelled["labels"]] == ["bug"]
    found = world.get()
    assert (found["comments"], found["reactions"]["heart"]) == (1, 1)
    assert world.listed(label="BUG") == [1]
    assert ok(world.http.delete(f"{world.url}/1/labels/bug"))["labels"] == []
    kinds = ["proposal.create", "comment.create", "reaction.add", "reaction.add"]
    assert world.timeline() == [*kinds, "proposal.label", "proposal.unlabel"]


def test_filters(world: World) -> None:
    world.branch("other", b"other\n")
    world.branch("third", b"third\n")
    who, writer = world.member("write")
    world.propose(title="Add ONE thing", reviewers=[who.handle])
    world.propose("other", http=writer, draft=True, title="50% done")
    world.propose("third", base="other")
    ok(world.patch(3, state="closed"))
    for query, expected in (
        ({}, [2, 1]),
        ({"state": "closed"}, [3]),
        ({"state": "merged"}, []),
        ({"state": "all"}, [3, 2, 1]),
        ({"author": "@me"}, [1]),
        ({"author": who.handle}, [2]),
        ({"author": "nobody-here"}, []),
        ({"reviewer": who.handle}, [1]),
        ({"draft": "true"}, [2]),
        ({"draft": "false"}, [1]),
        ({"head": "other"}, [2]),
        ({"base": "other", "state": "all"}, [3]),
        ({"search": "one THING"}, [1]),
        ({"search": "%"}, [2]),
        ({"involves": "@me", "state": "all"}, [3, 1]),
        ({"state": "all", "limit": 2}, [3, 2]),
    ):
        assert world.listed(**query) == expected, query
    assert world.listed(writer, reviewer="@me") == [1]


def test_a_list_is_a_fixed_number_of_statements(world: World) -> None:
    """The least of five pages: jobs and followers of the node run statements of their own beside them."""
    world.propose()
    one = min(_statements(world) for _ in range(5))
    for n in range(8):
        world.branch(f"b{n}", f"{n}\n".encode())
        world.propose(f"b{n}", body="closes #1")
    assert min(_statements(world) for _ in range(5)) <= one <= 12


def _statements(world: World) -> int:
    """How many a page runs."""
    ran: list[object] = []

    async def kind() -> type:
        async with world.relay.node.db.read() as tx:
            return next(one for one in type(tx).__mro__ if "all" in vars(one))

    owner = world.relay.run(kind())
    real = owner.all  # type: ignore[attr-defined]

    def spy(self: Any, *args: Any, **values: Any) -> Any:
        ran.append(args)
        return real(self, *args, **values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, "all", spy)
        world.listed(state="all")
    return len(ran)


def test_an_archived_repository_takes_none(world: World) -> None:
    world.propose()
    repo = tables["repo"]
    world.run(update(repo).where(repo.c.id == world.repo.id).values(state="archived"))
    answer = world.http.post(world.url, json={"head": "topic", "base": "main", "title": "t"})
    assert code(answer)[0] == 409
    assert code(world.patch(state="closed"))[0] == 409
    assert world.get()["state"] == "open"


def test_strangers_post_so_much_in_a_minute(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "POSTS_STRANGER", 2)
    world.publish()
    stranger = world.client(world.account())
    world.propose(http=stranger)
    say = {"verdict": "comment", "body": "a word"}
    ok(stranger.post(f"{world.url}/1/reviews", json=say))
    assert code(stranger.post(f"{world.url}/1/reviews", json=say)) == (429, "rate_limited")
