"""History with what was merged, against the real git on random histories with branches and merges."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from relay.db.schema.seal import seal
from tests.depth import rounds
from tests.relay.conftest import Account, Relay
from tests.relay.domain.history.real_git import Git, owners
from tests.relay.histories import Repository, create, ok

FILES = ("f.txt", "d/g.txt", "d/h.txt")
BRANCHES = ("main", "one", "two")
STEPS = 30


@pytest.fixture(scope="module")
def owner(relay: Relay) -> Account:
    return relay.account("joined")


@pytest.fixture(scope="module")
def http(relay: Relay, owner: Account) -> Any:
    with relay.client(owner) as client:
        yield client


class Histories:
    """The same history in a repository of svc and in one of git."""

    def __init__(self, repo: Repository, folder: Path, chance: random.Random) -> None:
        self.repo, self.git, self.chance = repo, Git(folder), chance
        self.heads: dict[str, str] = {}
        self.commits: dict[str, str] = {}  # by seal
        self.files: dict[str, dict[str, bytes]] = {}  # of each branch
        self.lines = 0
        self.merges = 0

    def begin(self) -> None:
        (self.git.folder / "d").mkdir()
        for path in FILES:
            self._write(path, [self._line() for _ in range(30)])
        self._seal("main", [])
        for branch in BRANCHES[1:]:
            self.repo.branch(branch, self.heads["main"])
            self.git.run("branch", branch)
            self.heads[branch], self.files[branch] = self.heads["main"], self.files["main"]

    def step(self) -> None:
        branch = self.chance.choice(BRANCHES)
        self.git.run("checkout", "-q", branch)
        other = self.chance.choice([one for one in BRANCHES if one != branch])
        if self.chance.random() < 0.35 and not self._has(branch, other):
            self.merge(branch, other)
        else:
            self.edit(branch)

    def edit(self, branch: str) -> None:
        for path in self.chance.sample(FILES, self.chance.choice([1, 1, 2])):
            lines = self._read(path)
            for _ in range(self.chance.choice([1, 1, 2])):
                at = self.chance.randrange(len(lines) + 1)
                fresh = [self._line() for _ in range(self.chance.choice([0, 1, 1, 2]))]
                lines[at : at + self.chance.randrange(3)] = fresh
            self._write(path, lines or [self._line()])
        self._seal(branch, [])

    def merge(self, branch: str, other: str) -> None:
        """What git merges, and for what conflicts one side, the other, or lines of both and new ones."""
        self.merges += 1
        done = subprocess.run(
            ["git", "merge", "--no-ff", "--no-commit", other], cwd=self.git.folder, capture_output=True
        )
        if done.returncode:
            for path in self.git.run("diff", "--name-only", "--diff-filter=U").splitlines():
                ours = self.git.run("show", f"{branch}:{path}").splitlines(keepends=True)
                theirs = self.git.run("show", f"{other}:{path}").splitlines(keepends=True)
                both = [*ours[:10], self._line(), *(line for line in theirs[10:] if line not in ours[:10])]
                self._write(path, self.chance.choice([ours, theirs, both]))
        elif self.chance.random() < 0.2:
            self._write("f.txt", [*self._read("f.txt"), self._line()])
        self._seal(branch, [self.heads[other]])

    def _has(self, branch: str, other: str) -> bool:
        base = self.git.run("merge-base", branch, other).strip()
        return base == self.git.run("rev-parse", other).strip()

    def _seal(self, branch: str, merged: list[str]) -> None:
        """Seal what the folder of git has, and commit it."""
        before = self.files.get(branch, {})
        self.files[branch] = {path: (self.git.folder / path).read_bytes() for path in FILES}
        files = {path: data for path, data in self.files[branch].items() if before.get(path) != data}
        git = bool(merged) and self.chance.random() < 0.5
        (made,) = self.repo.seal(files, branch=branch, parents=merged, git=git)
        self.heads[branch] = made
        self.commits[made] = self.git.commit({}, made)

    def _line(self) -> str:
        self.lines += 1
        return f"line {self.lines}\n"

    def _read(self, path: str) -> list[str]:
        return (self.git.folder / path).read_text().splitlines(keepends=True)

    def _write(self, path: str, lines: list[str]) -> None:
        (self.git.folder / path).write_text("".join(lines))

    # --- what both tell

    def log(self, **query: Any) -> list[str]:
        """All pages."""
        found: list[str] = []
        page = self.repo.get("/commits", limit=7, **query)
        while True:
            found += [one["id"] for one in page["items"]]
            if page["next_cursor"] is None:
                return found
            page = self.repo.get("/commits", limit=7, cursor=page["next_cursor"], **query)

    def revisions(self, *asked: str) -> list[str]:
        return [self.git.seal_of[one] for one in self.git.run("rev-list", *asked).splitlines()]

    def changed(self, head: str, path: str) -> set[str]:
        """Commits of the whole history that changed the path; of merges those that have there what none of
        their parents has."""
        found = self.revisions("--full-history", head, "--", path)
        return {one for one in found if all(self._differs(parent, one, path) for parent in self._above(one))}

    def _above(self, seal: str) -> list[str]:
        return self.git.run("rev-list", "--parents", "-1", self.commits[seal]).split()[1:]

    def _differs(self, parent: str, seal: str, path: str) -> bool:
        return bool(self.git.run("diff", "--name-only", parent, self.commits[seal], "--", path))


@pytest.fixture
def histories(
    http: httpx.Client, owner: Account, tmp_path: Path, seed: int, request: pytest.FixtureRequest
) -> Histories:
    repo = create(http, owner, f"{request.function.__name__}-{seed}")
    made = Histories(repo, tmp_path, random.Random(seed))
    made.begin()
    for _ in range(STEPS):
        made.step()
    return made


@pytest.mark.parametrize("seed", range(rounds(4, 40)))
def test_a_history_with_merges_is_told_as_git_tells_it(histories: Histories) -> None:
    assert histories.merges > 2
    for branch in BRANCHES:
        found = histories.log(ref=branch)
        assert set(found) == set(histories.revisions(branch))
        assert len(found) == len(set(found))
        for one in found:
            above = [histories.git.seal_of[parent] for parent in histories._above(one)]
            assert all(found.index(parent) > found.index(one) for parent in above)
        assert histories.log(ref=branch, first_parent=True) == histories.revisions("--first-parent", branch)
        for other in BRANCHES:
            apart = histories.log(ref=branch, without=other)
            assert set(apart) == set(histories.revisions(f"{other}..{branch}"))
            assert apart == [one for one in found if one in apart]
        for path in (*FILES, "d"):
            assert set(histories.log(ref=branch, path=path)) == histories.changed(branch, path)
            line = histories.log(ref=branch, path=path, first_parent=True)
            assert line == histories.revisions("--first-parent", branch, "--", path)


@pytest.mark.parametrize("seed", range(rounds(4, 40)))
def test_lines_come_from_the_seals_that_git_names(histories: Histories) -> None:
    for branch in BRANCHES:
        head = histories.heads[branch]
        for path in FILES:
            commit = histories.commits[head]
            assert owners(histories.repo, head, path) == histories.git.blame(commit, path)
            line = owners(histories.repo, head, path, first_parent=True)
            assert line == histories.git.blame(commit, path, "--first-parent")


def listed(repo: Repository, **query: Any) -> list[str]:
    return [one["id"] for one in repo.get("/commits", **query)["items"]]


def joined(repo: Repository, *, git: bool) -> tuple[str, str, str, str]:
    """A first seal, one of a side and one of main, and the merge of both; all of f.txt."""
    (root,) = repo.seal({"f.txt": b"1\n2\n3\n4\n5\n"})
    repo.branch("side", root)
    (side,) = repo.seal({"f.txt": b"1\n2\n3\n4\nFIVE\n"}, branch="side")
    (main,) = repo.seal({"f.txt": b"ONE\n2\n3\n4\n5\n"})
    (merge,) = repo.seal({"f.txt": b"ONE\n2\n3\n4\nFIVE\n"}, parents=[side], git=git)
    return root, side, main, merge


def test_pages_fit_together_while_seals_are_made(http: httpx.Client, owner: Account) -> None:
    repo = create(http, owner, "pages")
    root, side, main, merge = joined(repo, git=True)
    page = repo.get("/commits", limit=2)
    repo.seal({"later": b"1"}, {"later": b"2"})
    rest = repo.get("/commits", limit=2, cursor=page["next_cursor"])
    assert [one["id"] for one in (*page["items"], *rest["items"])] == [merge, main, side, root]
    assert rest["next_cursor"] is None


@pytest.mark.parametrize("git", [False, True])
def test_a_clock_that_was_set_back_changes_no_order(
    relay: Relay, http: httpx.Client, owner: Account, git: bool
) -> None:
    """The side's seal is of the future, so that all made of it are older than it."""
    repo = create(http, owner, f"clock-{git}")
    (root,) = repo.seal({"f.txt": b"1\n"})
    repo.branch("side", root)
    (side,) = repo.seal({"f.txt": b"1\n2\n"}, branch="side")

    async def shift() -> None:
        async with relay.node.db.write() as tx:
            await tx.run(update(seal).where(seal.c.id == side).values(created_at=seal.c.created_at + 10**9))

    relay.run(shift())
    (main,) = repo.seal({"f.txt": b"0\n1\n"})
    (merge,) = repo.seal({"f.txt": b"0\n1\n2\n"}, parents=[side], git=git)
    after = repo.seal({"g": b"1"}, {"g": b"2"})
    assert listed(repo) == [*after[::-1], merge, side, main, root]
    found: list[str] = []
    cursor: dict[str, str] = {}
    while len(found) < 6:
        page = repo.get("/commits", limit=1, **cursor)
        found += [one["id"] for one in page["items"]]
        cursor = {"cursor": page["next_cursor"]}
    assert found == listed(repo)
    assert listed(repo, path="f.txt") == [merge, side, main, root]


def test_a_source_that_a_repository_lacks_is_told_nowhere_there(
    relay: Relay, http: httpx.Client, owner: Account
) -> None:
    """A fork has what came before the heads of its branches by parents alone."""
    repo = create(http, owner, "origin", visibility="public")
    root, side, main, merge = joined(repo, git=True)
    assert http.delete(f"{repo.url}/refs/branch/side").is_success
    assert listed(repo) == [merge, main, side, root]
    assert owners(repo, merge) == [main, root, root, root, side]
    other = relay.account("forker")
    with relay.client(other) as theirs:
        fork = Repository(theirs, other, ok(theirs.post(f"{repo.url}/forks", json={})))
        assert theirs.get(f"{fork.url}/seals/{side}").status_code == 404
        assert listed(fork) == listed(fork, path="f.txt") == [merge, main, root]
        assert listed(fork, without=root) == [merge, main]
        assert listed(fork, prefix=side[:8]) == []
        assert owners(fork, merge) == [main, root, root, root, merge]
        assert [one["id"] for one in fork.get("/log")["items"]] == [merge, main, root]


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("git", [False, True])
def test_what_a_merge_took_of_a_hidden_path_is_not_told(
    relay: Relay, http: httpx.Client, owner: Account, own: bool, git: bool
) -> None:
    """Where a folder is seen in part, a merge is listed for what it changed of the part that is seen, whether
    or not it has the hidden part of a side."""
    repo = create(http, owner, f"partly-{own}-{git}", visibility="public")
    (root,) = repo.seal({"mixed/seen": b"1", "mixed/hidden": b"1", "other": b"1"})
    ok(http.put(f"{repo.url}/paths", json={"path": "mixed/hidden", "visibility": "private"}))
    repo.branch("side", root)
    theirs = {"mixed/seen": b"2", "mixed/hidden": b"2"}
    (side,) = repo.seal(theirs, branch="side")
    (main,) = repo.seal({"other": b"2"})
    (merge,) = repo.seal(theirs | {"mixed/hidden": b"3"} if own else theirs, parents=[side], git=git)
    (unseen,) = repo.seal({"mixed/hidden": b"4"}, branch="side")
    (both,) = repo.seal({"mixed/hidden": b"4"}, parents=[unseen], git=git)
    assert listed(repo) == [both, unseen, merge, main, side, root]
    assert listed(repo, path="mixed") == [unseen, *([merge] if own else []), side, root]
    with relay.client(None) as anonymous:
        shown = Repository(anonymous, owner, repo.body)
        assert listed(shown) == [both, unseen, merge, main, side, root]
        assert listed(shown, path="mixed") == [merge, side, root]
        assert listed(shown, path="mixed/hidden") == []
        assert listed(shown, path="mixed", first_parent=True) == [merge, root]
