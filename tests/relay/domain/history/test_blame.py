"""Line blame, against the real git on generated histories."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select

from relay.db.schema.seal import blame_cache
from relay.domain.history import blame_cache as cache
from tests.depth import DEEP, rounds
from tests.relay.conftest import Account, Relay
from tests.relay.domain.history.real_git import Git, owners
from tests.relay.histories import create

SEALS = 30
WORDS = ("alpha", "beta", "gamma", "delta", "}", "", "return")


@pytest.fixture(scope="module")
def owner(relay: Relay) -> Account:
    return relay.account("blamed")


@pytest.fixture(scope="module")
def http(relay: Relay, owner: Account) -> Any:
    with relay.client(owner) as client:
        yield client


@pytest.fixture
def git(tmp_path: Path) -> Git:
    return Git(tmp_path)


def edited(lines: list[bytes], rng: random.Random) -> list[bytes]:
    """Some lines changed, removed and added."""
    new = list(lines)
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(new))
        fresh = [f"{rng.choice(WORDS)} {rng.randint(0, 4)}\n".encode() for _ in range(rng.randint(0, 3))]
        new[at : at + rng.randint(0, 2)] = fresh
    return new


def test_a_linear_history_blames_as_git_does(http: httpx.Client, owner: Account, git: Git) -> None:
    rng = random.Random(20261121)
    lines: list[bytes] = []
    texts = []
    for _ in range(SEALS):
        lines = edited(lines, rng) or [b"one\n"]
        texts.append(b"".join(lines))
    repo = create(http, owner, "linear")
    made = repo.seal(*({"f.txt": text} for text in texts))
    commits = [git.commit({"f.txt": text}, one) for text, one in zip(texts, made, strict=True)]
    for at in (SEALS - 1, 4, SEALS // 2):  # the newest first, then continued from and before what was kept
        assert owners(repo, made[at]) == git.blame(commits[at], "f.txt")


def test_a_merge_leaves_lines_with_whoever_brought_them(http: httpx.Client, owner: Account, git: Git) -> None:
    base = b"".join(b"line %d\n" % n for n in range(12))
    mine, theirs = base.replace(b"line 2\n", b"mine\n"), base.replace(b"line 9\n", b"theirs\nmore\n")
    merged = theirs.replace(b"line 2\n", b"mine\n") + b"by the merge\n"
    repo = create(http, owner, "joined")
    (root,) = repo.seal({"f.txt": base})
    repo.branch("side", root)
    (side,) = repo.seal({"f.txt": theirs}, branch="side")
    (main,) = repo.seal({"f.txt": mine})
    (merge,) = repo.seal({"f.txt": merged}, parents=[side])
    git.commit({"f.txt": base}, root)
    git.run("checkout", "-q", "-b", "side")
    git.commit({"f.txt": theirs}, side)
    git.run("checkout", "-q", "main")
    git.commit({"f.txt": mine}, main)
    git.run("merge", "-q", "--no-ff", "--no-commit", "side")
    commit = git.commit({"f.txt": merged}, merge)
    assert set(owners(repo, merge)) == {root, side, main, merge}
    assert owners(repo, merge) == git.blame(commit, "f.txt")


def test_a_side_that_left_a_long_line_of_versions_midway(
    http: httpx.Client, owner: Account, git: Git
) -> None:
    """Owners are known where a stretch of versions ended, and found again for those between."""
    lines = [b"line %d\n" % n for n in range(40)]
    texts = [b"".join(lines)]
    for n in range(39):
        lines[n] = b"changed %d\n" % n
        texts.append(b"".join(lines))
    repo = create(http, owner, "midway")
    made = repo.seal(*({"f.txt": text} for text in texts))
    repo.branch("side", made[20])
    (side,) = repo.seal({"f.txt": texts[20] + b"by the side\n"}, branch="side")
    merged = texts[-1] + b"by the side\n"
    (merge,) = repo.seal({"f.txt": merged}, parents=[side])
    for text, one in zip(texts[:21], made, strict=False):
        git.commit({"f.txt": text}, one)
    git.run("branch", "side")
    for text, one in zip(texts[21:], made[21:], strict=True):
        git.commit({"f.txt": text}, one)
    git.run("checkout", "-q", "side")
    git.commit({"f.txt": texts[20] + b"by the side\n"}, side)
    git.run("checkout", "-q", "main")
    git.run("merge", "-q", "--no-ff", "--no-commit", "side")
    commit = git.commit({"f.txt": merged}, merge)
    assert owners(repo, merge) == git.blame(commit, "f.txt") == [*made[1:], made[0], side]


def test_a_merge_that_takes_a_file_whole_owns_nothing_of_it(http: httpx.Client, owner: Account) -> None:
    repo = create(http, owner, "taken")
    (root,) = repo.seal({"f.txt": b"a\nb\n"})
    repo.branch("side", root)
    (side,) = repo.seal({"f.txt": b"a\nB\n"}, branch="side")
    repo.seal({"other": b"x"})
    (merge,) = repo.seal({"f.txt": b"a\nB\n"}, parents=[side])
    assert owners(repo, merge) == [root, side]


def test_a_moved_file_keeps_its_owners(http: httpx.Client, owner: Account, git: Git) -> None:
    before, after = b"a\nb\nc\nd\n", b"a\nB\nc\nd\n"
    repo = create(http, owner, "moved")
    made = repo.seal({"f.txt": before}, {"f.txt": None, "g.txt": before}, {"g.txt": after})
    git.commit({"f.txt": before}, made[0])
    git.run("mv", "f.txt", "g.txt")
    git.commit({}, made[1])
    commit = git.commit({"g.txt": after}, made[2])
    assert (
        owners(repo, made[2], "g.txt") == git.blame(commit, "g.txt") == [made[0], made[2], made[0], made[0]]
    )


def test_a_file_that_was_removed_and_came_back_is_new(http: httpx.Client, owner: Account) -> None:
    repo = create(http, owner, "returned")
    _, _, back, same = repo.seal({"f.txt": b"a\n"}, {"f.txt": None}, {"f.txt": b"a\n"}, {"g": b"x"})
    assert owners(repo, same) == [back]


def test_owners_are_kept_and_continued(relay: Relay, http: httpx.Client, owner: Account) -> None:
    repo = create(http, owner, "kept")
    made = repo.seal(*({"f.txt": b"".join(b"%d\n" % n for n in range(count))} for count in range(1, 80)))

    async def kept() -> int:
        async with relay.node.db.read() as tx:
            return int(await tx.value(select(func.count()).where(blame_cache.c.repo_id == repo.id)))

    assert owners(repo, made[-1]) == made
    first = relay.run(kept())
    assert first == 2  # one on the way, one at the end
    assert owners(repo, made[-1]) == made
    assert relay.run(kept()) == first


def test_owners_that_are_kept_have_a_limit(
    relay: Relay, http: httpx.Client, owner: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers fill the cache, so it has a limit in each repository, and blame is right without it."""
    repo = create(http, owner, "limited")
    made = repo.seal(*({"f.txt": b"".join(b"%d\n" % n for n in range(count))} for count in range(1, 12)))
    other = create(http, owner, "untouched")
    others = other.seal({"f.txt": b"a\n"})
    assert owners(other, others[0]) == others

    async def kept(repo_id: str) -> tuple[int, int]:
        """How many versions have cached owners, and the bytes of these."""
        size = func.coalesce(func.sum(func.length(blame_cache.c.owners)), 0)
        async with relay.node.db.read() as tx:
            rows = await tx.all(select(func.count(), size).where(blame_cache.c.repo_id == repo_id))
        return int(rows[0][0]), int(rows[0][1])

    monkeypatch.setattr(cache, "BYTES_OF_REPO", 1500)
    for end in range(1, 12):
        assert owners(repo, made[end - 1]) == made[:end]
        assert relay.run(kept(repo.id))[1] <= 1500
    assert 0 < relay.run(kept(repo.id))[0] < 11
    monkeypatch.setattr(cache, "VERSIONS_OF_REPO", 2)
    for end in range(1, 12):
        assert owners(repo, made[end - 1]) == made[:end]
        assert relay.run(kept(repo.id))[0] <= 2
    before = relay.run(kept(repo.id))
    monkeypatch.setattr(cache, "BYTES", 100)
    assert owners(repo, made[3]) == made[:4]
    assert relay.run(kept(repo.id)) == before
    assert relay.run(kept(other.id))[0] == 1


def test_the_answer_names_people_and_times(http: httpx.Client, owner: Account) -> None:
    repo = create(http, owner, "named")
    (made,) = repo.seal({"f.txt": b"a\nb\n"}, messages=["why"])
    (only,) = repo.get(f"/seals/{made}/blame/f.txt")["ranges"]
    seal = repo.get(f"/seals/{made}")
    assert (only["start"], only["end"], only["message"]) == (1, 2, "why")
    assert only["who"]["handle"] == "blamed"
    assert (only["sealed_at"], only["device_key_id"]) == (seal["created_at"], owner.key.id)


def test_bytes_have_no_lines_and_missing_files_no_blame(http: httpx.Client, owner: Account) -> None:
    repo = create(http, owner, "bytes")
    (made,) = repo.seal({"f.bin": b"\0\1", "empty": b""})
    answer = http.get(f"{repo.url}/seals/{made}/blame/f.bin")
    assert (answer.status_code, answer.json()["code"]) == (422, "not_text")
    assert http.get(f"{repo.url}/seals/{made}/blame/nothing").status_code == 404
    assert repo.get(f"/seals/{made}/blame/empty")["ranges"] == []


def test_a_file_that_was_renamed_hundreds_of_times(http: httpx.Client, owner: Account) -> None:
    repo = create(http, owner, "renamed")
    data = b"line\n"
    many = rounds(150, 400)
    moves = [{f"f{n}": None, f"f{n + 1}": data} for n in range(many)]
    seals = repo.seal({"f0": data}, *moves)
    (found,) = repo.get(f"/seals/{seals[-1]}/blame/f{many}")["ranges"]
    assert found["seal_id"] == seals[0]


@pytest.mark.parametrize("created", [0, 64, 250, *([1, 63, 65, 190, 191, 192, 193] if DEEP else [])])
def test_versions_are_found_however_far_they_lie_apart(
    http: httpx.Client, owner: Account, created: int
) -> None:
    repo = create(http, owner, f"far-{created}")
    other = [{"other": b"%d\n" % n} for n in range(260)]
    other[created]["a"] = b"first\n"
    if created:
        other[0]["a"] = b"an older file of that name\n"
        other[created - 1]["a"] = None
    other[254]["a"] = b"first\nsecond\n"
    seals = repo.seal(*other)
    for head, expected in ((253, [created]), (259, [created, 254])):
        found = repo.get(f"/seals/{seals[head]}/blame/a")["ranges"]
        assert [one["seal_id"] for one in found] == [seals[at] for at in expected]


def test_merges_of_merges_hundreds_deep(http: httpx.Client, owner: Account) -> None:
    repo = create(http, owner, "merged")
    (root,) = repo.seal({"a": b"one\n"})
    repo.branch("b", root)
    first = before = repo.seal({"a": b"one\ntwo\n"}, branch="b")
    for n in range(rounds(40, 150)):
        repo.branch(f"b{n}", root)
        before = repo.seal({"a": b"one\ntwo\n"}, branch=f"b{n}", parents=before)
    (one, two) = repo.get(f"/seals/{before[0]}/blame/a")["ranges"]
    assert (one["seal_id"], two["seal_id"]) == (root, first[0])
