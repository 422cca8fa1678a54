"""Merges as git has them, and repositories that share seals."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from localstore.core.encoding import b64u, unb64u
from tests.relay.conftest import Account
from tests.relay.domain.git.conftest import Git, files
from tests.relay.histories import Repository, ok, own
from tests.relay.merges import apart, merge, put

Maker = Callable[..., Account]
Client = Callable[..., httpx.Client]


@pytest.fixture
def mine(account: Maker, client: Client) -> Repository:
    return own(account, client, visibility="public")


def parents(git: Git, at: str, ref: str = "HEAD") -> list[str]:
    return git("rev-parse", f"{ref}^@", at=at).split()


def test_a_merge_with_two_parents_is_one_of_git(git: Git, mine: Repository) -> None:
    n = apart(mine, {"ours": b"1"}, {"page": put(2, b"theirs")}, {"theirs": b"2"})
    git.clone(mine, "before")
    ours, theirs = git.head("before", "origin/main"), git.head("before", "origin/topic")
    merge(mine, n, "merge")
    git("fetch", "-q", at="before")
    assert parents(git, "before", "origin/main") == [ours, theirs]
    folder = git.clone(mine, "after")
    assert files(folder) == {"page": put(2, b"theirs"), "ours": b"1", "theirs": b"2"}
    assert git("log", "--oneline", "--first-parent", at="after").count("\n") == 3
    assert git.tried("fsck", "--strict", at="after").stderr == ""


@pytest.mark.parametrize("strategy", ["squash", "rebase"])
def test_other_strategies_have_one_parent(git: Git, mine: Repository, strategy: str) -> None:
    n = apart(mine, {"ours": b"1"}, {"theirs": b"2"})
    merge(mine, n, strategy, delete_branch=True)
    git.clone(mine, "work")
    assert len(parents(git, "work")) == 1
    assert git("rev-list", "--count", "--all", at="work") == "3\n"


def test_a_merge_without_a_second_parent_names_its_sources(git: Git, mine: Repository) -> None:
    """`svc merge` makes a seal with one parent that names what it was merged from: git knows it too."""
    start = mine.push(mine.owner.key, "a", b"1")["id"]
    mine.branch("topic", start)
    (topic,) = mine.seal({"b": b"2"}, branch="topic")
    key = mine.owner.key
    ok(mine.http.post(f"{mine.url}/branches/main/live/updates", json=mine.edit(key, "c", b"3")))
    asked = {"device_key_id": key.id, "message": "merged", "expected_head": start, "merged": [topic]}
    prepared = ok(mine.http.post(f"{mine.url}/branches/main/seal/prepare", json=asked))
    done = {
        "device_key_id": key.id,
        "prepare_id": prepared["prepare_id"],
        "signature": b64u(key.sign(unb64u(prepared["bytes"]))),
    }
    ok(mine.http.post(f"{mine.url}/branches/main/seal/finalize", json=done))
    git.clone(mine, "work")
    assert parents(git, "work") == [git.head("work", "origin/topic^"), git.head("work", "origin/topic")]
    assert "origin/topic" in git("branch", "-r", "--merged", "HEAD", at="work")


def test_a_fork_has_the_same_commits(git: Git, mine: Repository, account: Maker, client: Client) -> None:
    """Its seals are those of the repository that it was made from."""
    apart(mine, {"ours": b"1"}, {"theirs": b"2"})
    git.clone(mine, "base")
    other = account()
    http = client(other)
    made = Repository(http, other, ok(http.post(f"{mine.url}/forks", json={})))
    git.clone(made, "fork")
    for ref in ("main", "topic"):
        assert git.head("fork", f"origin/{ref}") == git.head("base", f"origin/{ref}")
    made.seal({"own": b"3"})
    git("fetch", "-q", git.address(made), at="base")
    assert parents(git, "base", "FETCH_HEAD") == [git.head("base", "origin/main")]


def test_a_history_of_many_lines(git: Git, mine: Repository) -> None:
    """Criss-cross merges and long side branches: each commit has the parents of its seal."""
    heads = {"main": mine.seal({"f": b"0"})[0]}
    commits: dict[str, list[str]] = {heads["main"]: []}
    for name in ("a", "b"):
        mine.branch(name, heads["main"])
        heads[name] = heads["main"]
    for number in range(24):
        name = ("main", "a", "b")[number % 3]
        other = ("a", "b", "main")[number % 3]
        merged = number % 4 == 3 and heads[other] != heads[name]
        before = heads[name]
        extra = [heads[other]] if merged else []
        (made,) = mine.seal({f"{name}/{number}": b"%d" % number}, branch=name, parents=extra)
        commits[made] = [before, *extra]
        heads[name] = made
    git.clone(mine, "work")
    assert git("rev-list", "--count", "--all", at="work") == f"{len(commits)}\n"
    for name, head in heads.items():
        stack, seen = [(head, git.head("work", f"origin/{name}"))], set()
        while stack:
            seal_id, commit = stack.pop()
            if seal_id in seen:
                continue
            seen.add(seal_id)
            found = parents(git, "work", commit)
            assert len(found) == len(commits[seal_id])
            stack += zip(commits[seal_id], found, strict=True)
    assert git.tried("fsck", "--strict", "--full", at="work").stderr == ""
