"""Files that move: followed by log and blame, shown by compare, as the real git shows them. Short ids."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.relay.conftest import Account, Relay
from tests.relay.domain.history.test_blame import Git, owners
from tests.relay.histories import Repository, create, ok

SEALS = 25
NAMES = ("a.txt", "b.txt", "d/a.txt", "d/c.txt", "e/f.txt")


@pytest.fixture(scope="module")
def owner(relay: Relay) -> Account:
    return relay.account("follower")


@pytest.fixture(scope="module")
def http(relay: Relay, owner: Account) -> Any:
    with relay.client(owner) as client:
        yield client


@pytest.fixture
def git(tmp_path: Path) -> Git:
    return Git(tmp_path)


def history(chance: random.Random) -> list[dict[str, bytes | None]]:
    """Changes of a few files, which are edited, moved, and moved while they are edited."""
    files: dict[str, list[str]] = {}
    changes = []
    for number in range(SEALS):
        change: dict[str, bytes | None] = {}
        free = [name for name in NAMES if name not in files]
        if not files or (free and chance.random() < 0.15):
            name = chance.choice(free)
            files[name] = [f"{name} {number} {line}" for line in range(30)]
        else:
            name = chance.choice(sorted(files))
            moves = bool(free) and chance.random() < 0.45
            if moves:
                moved = chance.choice(free)
                change[name], files[moved] = None, files.pop(name)
                name = moved
            if not moves or chance.random() < 0.7:
                for _ in range(chance.randrange(1, 5)):
                    files[name][chance.randrange(30)] = f"changed in {number} {chance.random()}"
        change[name] = "\n".join([*files[name], ""]).encode()
        changes.append(change)
    return changes


def commit(git: Git, change: dict[str, bytes | None], seal: str) -> str:
    for path, data in change.items():
        target = git.folder / path
        if data is None:
            target.unlink()
        else:
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(data)
    return git.commit({}, seal)


@pytest.mark.parametrize("seed", range(4))
def test_log_and_blame_follow_as_git_does(http: httpx.Client, owner: Account, git: Git, seed: int) -> None:
    changes = history(random.Random(seed))
    repo = create(http, owner, f"moves{seed}")
    commits = {}
    for change in changes:
        (made,) = repo.seal(change)
        commits[made] = commit(git, change, made)
    head = list(commits)[-1]
    for path in git.run("ls-files").split():
        told = [one["id"] for one in pages(repo, sha=head, path=path, follow=1)]
        logged = git.run("log", "--follow", "--format=%H", "--", path).split()
        assert told == [git.seal_of[one] for one in logged], path
        assert owners(repo, head, path) == git.blame(commits[head], path), path


def pages(repo: Repository, **query: Any) -> list[dict[str, Any]]:
    found, cursor = [], None
    while True:
        page = repo.get("/commits", limit=3, **query, **({"cursor": cursor} if cursor else {}))
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def test_compare_shows_moves_with_their_similarity(http: httpx.Client, owner: Account) -> None:
    repo = create(http, owner, "alike")
    before = b"".join(b"line %d of the file\n" % number for number in range(40))
    after = before.replace(b"line 7 ", b"LINE 7 ")
    first, second = repo.seal({"a.txt": before, "z": b"z"}, {"a.txt": None, "b.txt": after})
    for query in ({"base": first, "head": second}, {"head": second}):
        (one,) = repo.get("/compare", **query)["files"]
        assert (one["status"], one["old_path"], one["path"]) == ("renamed", "a.txt", "b.txt")
        assert (one["additions"], one["deletions"], one["similarity"]) == (1, 1, 97)
        assert "similarity index 97%\nrename from a.txt\nrename to b.txt\n" in one["patch"]
    brought = repo.get("/compare", head=first)
    assert (brought["base"], [one["path"] for one in brought["files"]]) == (None, ["a.txt", "z"])


def test_a_direct_comparison_starts_at_the_base_itself(http: httpx.Client, owner: Account) -> None:
    repo = create(http, owner, "direct")
    (root,) = repo.seal({"a": b"a"})
    repo.branch("side", root)
    repo.seal({"b": b"b"})
    repo.seal({"c": b"c"}, branch="side")
    names = {
        direct: [
            one["path"] for one in repo.get("/compare", base="main", head="side", direct=direct)["files"]
        ]
        for direct in (0, 1)
    }
    assert names == {0: ["c"], 1: ["b", "c"]}


def test_a_short_id_finds_what_branches_and_tags_lead_to(http: httpx.Client, owner: Account) -> None:
    repo = create(http, owner, "short")
    first, second = repo.seal({"a": b"a"}, {"a": b"b"})
    repo.branch("side", second)
    (dropped,) = repo.seal({"secret": b"s"}, branch="side")
    for seal in (first, second, dropped):
        for prefix in (seal, seal[:12], seal[:4]):
            assert seal in [one["id"] for one in repo.get("/commits", prefix=prefix)["items"]]
    ok_or_deleted = http.delete(f"{repo.url}/refs/branch/side")
    assert ok_or_deleted.status_code == 204
    assert repo.get("/commits", prefix=dropped[:12])["items"] == [], "nobody finds it by trial"
    assert ok(http.get(f"{repo.url}/seals/{dropped}"))["id"] == dropped
    for wrong in ("abc", "ABCD", "zzzz", "a" * 65, "%", "____"):
        assert http.get(f"{repo.url}/commits", params={"prefix": wrong}).status_code == 422, wrong
    assert http.get(f"{repo.url}/commits", params={"prefix": first, "ref": "main"}).status_code == 422


def test_a_short_id_is_looked_for_in_one_repository_only(
    relay: Relay, http: httpx.Client, owner: Account
) -> None:
    mine = create(http, owner, "mine")
    (seal,) = mine.seal({"a": b"mine alone"})
    other = create(http, owner, "other")
    other.seal({"a": b"other"})
    assert other.get("/commits", prefix=seal[:16])["items"] == []
    with relay.client(relay.account("stranger")) as stranger:
        assert stranger.get(f"{mine.url}/commits", params={"prefix": seal[:16]}).status_code == 404


def test_following_takes_one_path(http: httpx.Client, owner: Account) -> None:
    repo = create(http, owner, "wrong")
    repo.seal({"a": b"a"})
    wrong: list[dict[str, Any]] = [
        {"follow": 1},
        {"follow": 2, "path": "a"},
        {"follow": 1, "path": "../a"},
        {"follow": 1, "path": "a", "cursor": "x"},
        {"follow": 1, "path": "a", "ref": "main", "sha": "0" * 64},
    ]
    for query in wrong:
        assert http.get(f"{repo.url}/commits", params=query).status_code == 422, query
    assert http.get(f"{repo.url}/commits", params={"follow": 1, "path": "a", "ref": "no"}).status_code == 404
    assert repo.get("/commits", follow=1, path="nothing")["items"] == []
