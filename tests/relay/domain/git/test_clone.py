"""git clones and pulls public repositories."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import httpx
import pytest

from tests.relay.conftest import Account, Relay
from tests.relay.domain.git.conftest import Git, files
from tests.relay.histories import Repository, ok, own

Maker = Callable[..., Account]
Client = Callable[..., httpx.Client]


@pytest.fixture
def mine(account: Maker, client: Client) -> Repository:
    """A public repository with three seals."""
    made = own(account, client, visibility="public")
    made.seal(
        {"a.txt": b"one\n", "src/deep/b.py": b"print(1)\n", "src/a.py": b"", "bin": bytes(range(256))},
        {"a.txt": b"two\n", "src-x": b"sorts before src/\n", "src/deep/b.py": None},
        {"src/deep": b"a file now\n", "über.txt": "ü\n".encode()},
    )
    return made


def test_clone_pull_and_the_same_ids_again(relay: Relay, git: Git, mine: Repository) -> None:
    folder = git.clone(mine, "first")
    expected = {
        "a.txt": b"two\n",
        "src-x": b"sorts before src/\n",
        "src/a.py": b"",
        "src/deep": b"a file now\n",
        "bin": bytes(range(256)),
        "über.txt": "ü\n".encode(),
    }
    assert files(folder) == expected
    fsck = git.tried("fsck", "--strict", "--full", at="first")
    assert (fsck.returncode, fsck.stdout, fsck.stderr) == (0, "", "")
    assert git("log", "--format=%s", at="first").split("\n")[:3] == ["change 3", "change 2", "change 1"]
    assert git("symbolic-ref", "HEAD", at="first") == "refs/heads/main\n"

    mine.seal({"a.txt": b"three\n"})
    git("pull", "-q", at="first")
    assert files(folder) == {**expected, "a.txt": b"three\n"}

    head = git.head("first")
    shutil.rmtree(relay.folder / "git")
    git.clone(mine, "again")
    assert git.head("again") == head


def test_depth_and_protocols(git: Git, mine: Repository) -> None:
    folder = git.clone(mine, "shallow", "--depth", "1")
    assert git("rev-list", "--count", "HEAD", at="shallow") == "1\n"
    git("fetch", "-q", "--unshallow", at="shallow")
    assert git("rev-list", "--count", "HEAD", at="shallow") == "3\n"
    for version in ("0", "1", "2"):
        to = f"v{version}"
        git("-c", f"protocol.version={version}", "clone", "-q", git.address(mine), to)
        assert (git.head(to), files(git.folder / to)) == (git.head("shallow"), files(folder))
    git("clone", "-q", git.address(mine).removesuffix(".git"), "bare-name")
    git("clone", "-q", f"{git.url}/{mine.body['full_name'].upper()}.git", "upper")


def test_fetch_into_a_clone_with_commits_of_its_own(git: Git, mine: Repository) -> None:
    """git then names many commits that the relay does not have: it compresses the request."""
    folder = git.clone(mine, "work")
    for number in range(60):
        (folder / "own").write_text(str(number))
        git("add", "own", at="work")
        git("commit", "-q", "-m", f"mine {number}", at="work")
    mine.seal({"theirs": b"x"})
    for version in ("2", "0"):
        git("-c", f"protocol.version={version}", "fetch", "-q", "origin", at="work")
        assert git("log", "-1", "--format=%s", "origin/main", at="work") == "change 1\n"
        git("update-ref", "-d", "refs/remotes/origin/main", at="work")


def test_branches_tags_filters_and_single_commits(git: Git, mine: Repository) -> None:
    first, _, third = (one["id"] for one in reversed(mine.get("/commits")["items"]))
    mine.branch("topic/one", first)
    mine.seal({"topic.txt": b"t"}, branch="topic/one")
    assert mine.http.post(f"{mine.url}/refs", json={"type": "tag", "name": "v1", "head": third}).is_success
    folder = git.clone(mine, "all")
    assert git("tag", at="all") == "v1\n"
    assert git.head("all", "v1") == git.head("all")
    assert git("branch", "-r", "--format=%(refname:short)", at="all").split() == [
        "origin/HEAD",
        "origin/main",
        "origin/topic/one",
    ]
    assert git.head("all", "origin/topic/one^") == git.head("all", "HEAD~2")

    git.clone(mine, "partial", "--filter=blob:none")
    assert files(git.folder / "partial") == files(folder)
    assert git("show", "HEAD~2:src/deep/b.py", at="partial") == "print(1)\n"

    git("init", "-q", "one")
    git("fetch", "-q", git.address(mine), git.head("all", "HEAD~1"), at="one")
    assert git("log", "--format=%s", "FETCH_HEAD", at="one") == "change 2\nchange 1\n"

    assert mine.http.delete(f"{mine.url}/refs/branch/topic/one").is_success
    git("fetch", "-q", "--prune", at="all")
    assert "topic" not in git("branch", "-r", at="all")


def test_an_empty_repository(git: Git, account: Maker, client: Client) -> None:
    empty = own(account, client, visibility="public", default_branch="trunk")
    git.clone(empty, "empty")
    assert git("symbolic-ref", "HEAD", at="empty") == "refs/heads/trunk\n"
    empty.seal({"a": b"1"}, branch="trunk")
    git("pull", "-q", at="empty")
    assert files(git.folder / "empty") == {"a": b"1"}


def test_many_directories_and_odd_names(git: Git, account: Maker, client: Client) -> None:
    """What a tree of git sorts otherwise than svc does, and what has to be quoted."""
    odd = own(account, client, visibility="public")
    first = {
        name: name.encode()
        for name in [
            "a",
            "a.b",
            "a-b",
            "a0",
            "x/y",
            "x.y",
            "x-y",
            "x0/y",
            "sp ace",
            "q'uo\"te",
            "日本/語",
            "…",
        ]
    }
    changes = [
        first,
        {"a": None, "a/b/c": b"1"},
        {"a/b/c": None, "a/b": b"2"},
        {"a/b": None, "x/y": None},
        {"x": b"3"},
    ]
    odd.seal(*changes)
    folder = git.clone(odd, "odd")
    state: dict[str, bytes] = {}
    for at, change in enumerate(changes):
        for path, data in change.items():
            state.pop(path, None) if data is None else state.update({path: data})
        git(
            "checkout",
            "-q",
            f"HEAD~{len(changes) - 1 - at}" if not at else git.head("odd", f"main~{len(changes) - 1 - at}"),
            at="odd",
        )
        assert files(folder) == state
    assert git.tried("fsck", "--strict", at="odd").stderr == ""


def test_names_that_git_cannot_have_together(git: Git, mine: Repository) -> None:
    """A branch below the name of another: git has one of them, and a clone of the rest."""
    (head,) = mine.seal({"a": b"1"})
    for name in ("feature/x", "feature", "feature-2", "main/y"):
        mine.branch(name, head)
    for name in ("v1/rc", "v1"):
        ok(mine.http.post(f"{mine.url}/refs", json={"type": "tag", "name": name, "head": head}))
    git.clone(mine, "work")
    listed = git("for-each-ref", "--format=%(refname)", at="work").split()
    expected = {f"refs/remotes/origin/{name}" for name in ("HEAD", "main", "feature", "feature-2")}
    assert set(listed) == {*expected, "refs/heads/main", "refs/tags/v1"}
    ok(mine.http.patch(mine.url, json={"default_branch": "main/y"}))
    assert git("ls-remote", "--symref", git.address(mine), "HEAD").startswith("ref: refs/heads/main/y\t")
    git.clone(mine, "other")
    assert "origin/main\n" not in git("branch", "-r", at="other")
    assert mine.http.delete(f"{mine.url}/refs/branch/feature").is_success
    git("fetch", "-q", "--prune", at="work")
    assert "origin/feature/x\n" in git("branch", "-r", at="work")
