"""Comparison of refs and seals, against the real git."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from localstore.core.model.limits import COMPARE_FILES, COMPARE_TEXT_BYTES, DIFF_BYTES
from relay.db.paging import Cursor
from relay.memory.compared import ChangedFilesPage, weigh_pairs
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create

BASE = {
    "keep.txt": b"same\n",
    "edit.txt": b"".join(b"line %d\n" % n for n in range(30)),
    "old name.txt": b"moved as it is\n",
    "gone.txt": b"bye\n",
    "image.bin": b"\0" * 50,
}
HEAD: dict[str, bytes | None] = {
    "edit.txt": BASE["edit.txt"].replace(b"line 3\n", b"").replace(b"line 20\n", b"LINE 20\nand more"),
    "old name.txt": None,
    "new/näme.txt": BASE["old name.txt"],
    "gone.txt": None,
    "image.bin": b"\0" * 60,
    "added.txt": b"no newline at the end",
}


@pytest.fixture(scope="module")
def owner(relay: Relay) -> Account:
    return relay.account("comparer")


@pytest.fixture(scope="module")
def http(relay: Relay, owner: Account) -> Any:
    with relay.client(owner) as client:
        yield client


@pytest.fixture(scope="module")
def repo(http: httpx.Client, owner: Account) -> Repository:
    """`topic` changed files since `main`, which went on with another file."""
    made = create(http, owner, "compared")
    (root,) = made.seal(BASE)
    made.branch("topic", root)
    topic = made.seal(HEAD, branch="topic")
    main = made.seal({"other.txt": b"1\n"}, {"other.txt": b"2\n"})
    made.body.update(root=root, topic=topic[-1], main=main[-1])
    return made


def write(folder: Path, files: dict[str, bytes | None]) -> None:
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if data is not None:
            target.write_bytes(data)


def test_refs_and_seals_are_compared_from_the_merge_base(repo: Repository) -> None:
    by_ref = repo.get("/compare", base="main", head="topic")
    assert by_ref == repo.get("/compare", base=repo.body["main"], head=repo.body["topic"])
    assert (by_ref["merge_base"], by_ref["ahead"], by_ref["behind"]) == (repo.body["root"], 1, 2)
    assert {one["path"]: one["status"] for one in by_ref["files"]} == {
        "added.txt": "added",
        "edit.txt": "modified",
        "gone.txt": "removed",
        "image.bin": "modified",
        "new/näme.txt": "renamed",
    }
    image = next(one for one in by_ref["files"] if one["path"] == "image.bin")
    assert (image["binary"], image["patch"], image["additions"]) == (True, None, 0)
    moved = next(one for one in by_ref["files"] if one["status"] == "renamed")
    assert (moved["old_path"], moved["additions"], moved["deletions"]) == ("old name.txt", 0, 0)


def test_patches_are_those_of_git(repo: Repository, tmp_path: Path) -> None:
    write(tmp_path / "a", dict(BASE))
    write(tmp_path / "b", {**BASE, **HEAD})
    for path in ("added.txt", "edit.txt", "gone.txt"):
        sides = [f"{side}/{path}" if (tmp_path / side / path).exists() else "/dev/null" for side in "ab"]
        if HEAD[path] is None:
            sides[1] = "/dev/null"
        done = subprocess.run(
            ["git", "-c", "core.quotepath=off", "diff", "--no-index", "--no-prefix", *sides],
            cwd=tmp_path,
            capture_output=True,
        )
        theirs = [line for line in done.stdout.decode().splitlines() if not line.startswith("index ")]
        file = next(
            one for one in repo.get("/compare", base="main", head="topic")["files"] if one["path"] == path
        )
        ours = file["patch"].splitlines()
        hunks = next(at for at, line in enumerate(ours) if line.startswith("@@"))
        place = next(at for at, line in enumerate(theirs) if line.startswith("@@"))
        heading = [line.split(" @@")[0] if line.startswith("@@") else line for line in theirs[place:]]
        assert [line.split(" @@")[0] if line.startswith("@@") else line for line in ours[hunks:]] == heading
        assert file["additions"] == sum(line.startswith("+") for line in theirs[place:])
        assert file["deletions"] == sum(line.startswith("-") for line in theirs[place:])


def test_the_patches_apply_with_git(repo: Repository, tmp_path: Path) -> None:
    write(tmp_path, {path: data for path, data in BASE.items() if path != "image.bin"})
    patches = [
        one["patch"] for one in repo.get("/compare", base="main", head="topic")["files"] if one["patch"]
    ]
    subprocess.run(["git", "apply", "-"], input="".join(patches).encode(), cwd=tmp_path, check=True)
    found = {
        str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
    }
    wanted = {
        path: data for path, data in {**BASE, **HEAD}.items() if data is not None and path != "image.bin"
    }
    assert found == wanted


def test_a_ref_compared_with_itself_or_its_past(repo: Repository) -> None:
    same = repo.get("/compare", base="main", head="main")
    assert (same["ahead"], same["behind"], same["files"]) == (0, 0, [])
    past = repo.get("/compare", base="main", head=repo.body["root"])
    assert (past["ahead"], past["behind"], past["merge_base"], past["files"]) == (0, 2, repo.body["root"], [])
    future = repo.get("/compare", base=repo.body["root"], head="main")
    assert (future["ahead"], future["behind"]) == (2, 0)
    assert [one["path"] for one in future["files"]] == ["other.txt"]


def test_criss_cross_merges_count_each_seal_once(http: httpx.Client, owner: Account) -> None:
    mine = create(http, owner, "crossed")
    (root,) = mine.seal({"f": b"0"})
    mine.branch("b", root)
    (a1,) = mine.seal({"a": b"1"})
    (b1,) = mine.seal({"b": b"1"}, branch="b")
    (a2,) = mine.seal({"b": b"1"}, parents=[b1])
    (b2,) = mine.seal({"a": b"1"}, branch="b", parents=[a1])
    found = mine.get("/compare", base="main", head="b")
    assert (found["ahead"], found["behind"]) == (1, 1)
    assert found["merge_base"] in (a1, b1)
    assert {a2, b2} == {found["base"], found["head"]}


def test_long_texts_go_without_a_patch(http: httpx.Client, owner: Account) -> None:
    mine = create(http, owner, "heavy")
    mine.seal({"big.txt": b"x\n" * (DIFF_BYTES // 2 + 1), "small.txt": b"1\n"})
    (first,) = [mine.head()]
    mine.seal({"big.txt": b"y\n" * (DIFF_BYTES // 2 + 1), "small.txt": b"2\n"})
    files = {one["path"]: one for one in mine.get("/compare", base=first, head="main")["files"]}
    assert files["big.txt"]["patch"] is None
    assert files["big.txt"]["binary"] is False
    assert files["small.txt"]["patch"] is not None


def pages(repo: Repository, **query: Any) -> list[list[dict[str, Any]]]:
    """The files of each page of a comparison."""
    found, cursor = [], None
    while not found or cursor:
        answer = repo.get("/compare", **query, **({"cursor": cursor} if cursor else {}))
        found.append(answer["files"])
        cursor = answer["next_cursor"]
    return found


def test_a_page_reads_a_share_of_texts_and_no_more(http: httpx.Client, owner: Account) -> None:
    """Two long texts under many paths cost as much for each of them."""
    mine = create(http, owner, "shared")
    count = 4
    old = b"x\n" * (DIFF_BYTES // 2 - 1000)
    (first,) = mine.seal({f"f{n:02}": old for n in range(count)})
    mine.seal({f"f{n:02}": old + b"y\n" for n in range(count)} | {"small": b"1\n"})
    each = COMPARE_TEXT_BYTES // (2 * len(old) + 2)
    found = pages(mine, base=first, head="main")
    assert [len(page) for page in found] == [*[each] * (count // each - 1), each + 1]
    assert all(one["patch"] for page in found for one in page)


def test_many_changed_files_come_in_pages(http: httpx.Client, owner: Account) -> None:
    mine = create(http, owner, "paged")
    count = COMPARE_FILES + 10
    (first,) = mine.seal({f"f{n:04}": b"1\n" for n in range(count)})
    (second,) = mine.seal({f"f{n:04}": b"2\n" for n in range(count)})
    one = mine.get("/compare", base=first, head="main")
    mine.seal({"more": b"later\n"})
    two = mine.get("/compare", base=first, head="main", cursor=one["next_cursor"])
    assert (two["head"], two["next_cursor"]) == (second, None)  # what the first page began
    assert [file["path"] for file in one["files"] + two["files"]] == [f"f{n:04}" for n in range(count)]
    assert sum(map(len, pages(mine, head="main"))) == 1
    assert sum(map(len, pages(mine, head=second, limit=100))) == count
    assert mine.get("/compare", base=first, head=second, limit=0)["files"] == []
    for cursor in ("x", one["next_cursor"][:-4]):
        answer = mine.http.get(
            f"{mine.url}/compare", params={"base": first, "head": "main", "cursor": cursor}
        )
        assert answer.status_code == 422
    answer = mine.http.get(f"{mine.url}/compare", params={"head": "main", "cursor": one["next_cursor"]})
    assert answer.status_code == 422


def test_a_cursor_beyond_the_last_file_is_refused_and_nothing_is_kept(
    http: httpx.Client, owner: Account, relay: Relay
) -> None:
    mine = create(http, owner, "beyond")
    first, second = mine.seal({"a": b"1\n"}, {"a": b"2\n"})
    kept = relay.node.comparisons.pages._values
    assert len(mine.get("/compare", base=first, head=second)["files"]) == 1
    before = len(kept)
    for at in (1, 2, 10**9):
        asked = {"base": first, "head": second, "cursor": Cursor.write(first, second, at)}
        answer = mine.http.get(f"{mine.url}/compare", params=asked)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/cursor")
    assert mine.get("/compare", base=first, head=first)["files"] == []
    assert len(kept) == before + 1
    assert ChangedFilesPage([], None).weigh() > 0
    assert weigh_pairs([]) > 0


def test_renames_of_a_long_text_are_found_beside_the_event_loop(
    http: httpx.Client, owner: Account, relay: Relay
) -> None:
    """The texts are too much for a thread: another process compares them, and the answer is the same."""
    mine = create(http, owner, "heavy-moves")
    text = b"".join(b"line %d of many\n" % at for at in range(10_000))
    (first,) = mine.seal({"a/old.txt": text})
    mine.seal({"a/old.txt": None, "b/new.txt": text + b"one more\n"})
    (file,) = mine.get("/compare", base=first, head="main")["files"]
    assert (file["old_path"], file["path"], file["additions"]) == ("a/old.txt", "b/new.txt", 1)
    assert relay.node.workers.started
    blamed = mine.get(f"/seals/{mine.head()}/blame/b/new.txt")
    assert [(one["start"], one["end"]) for one in blamed["ranges"]] == [(1, 10_000), (10_001, 10_001)]


def test_many_copies_of_a_file_that_move_are_all_renamed(http: httpx.Client, owner: Account) -> None:
    mine = create(http, owner, "moved")
    (first,) = mine.seal({f"a/{n:04}": b"same\n" for n in range(500)})
    mine.seal({f"a/{n:04}": None for n in range(500)} | {f"b/{n:04}": b"same\n" for n in range(500)})
    files = [one for page in pages(mine, base=first, head="main") for one in page]
    assert [(one["old_path"], one["path"]) for one in files] == [
        (f"a/{n:04}", f"b/{n:04}") for n in range(500)
    ]
