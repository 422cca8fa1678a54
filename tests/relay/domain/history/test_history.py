"""Sealed history over HTTP, compared with tarfile and with the real git."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from datetime import datetime
from typing import Any

import httpx
import pytest
from blake3 import blake3
from sqlalchemy import bindparam, update

from localstore.core import seal as kernel
from localstore.core import tree
from localstore.core.encoding import unb64u
from relay.db.paging import Cursor
from relay.db.schema.repo import repo as repo_table
from relay.db.schema.seal import seal as seal_table
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
FIRST = {"README.md": b"# one\n", "src/a.py": b"a = 1\n", "src/deep/b.py": b"b = 2\n", "logo.png": PNG}
SECOND = {"src/a.py": b"a = 2\n", "src.txt": b"sorts between\n"}
THIRD: dict[str, bytes | None] = {"src/deep/b.py": None, "moved.py": b"b = 2\n"}


@pytest.fixture(scope="module")
def owner(relay: Relay) -> Account:
    return relay.account("historian")


@pytest.fixture(scope="module")
def http(relay: Relay, owner: Account) -> Any:
    with relay.client(owner) as client:
        yield client


@pytest.fixture(scope="module")
def repo(http: httpx.Client, owner: Account) -> Repository:
    """Three seals on `main` of a public repository."""
    made = create(http, owner, "told", visibility="public")
    made.body["seals"] = made.seal(FIRST, SECOND, THIRD, messages=["first", "second", "third"])
    return made


def seals(repo: Repository) -> list[str]:
    return list(repo.body["seals"])


def after(*changes: dict[str, Any]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for change in changes:
        files.update(change)
    return {path: data for path, data in files.items() if data is not None}


def test_commits_walk_back_from_the_head_and_from_any_seal(repo: Repository) -> None:
    first, second, third = seals(repo)
    assert [one["id"] for one in repo.get("/commits")["items"]] == [third, second, first]
    assert [one["id"] for one in repo.get("/commits", ref="main", limit=2)["items"]] == [third, second]
    assert [one["id"] for one in repo.get("/commits", sha=second)["items"]] == [second, first]
    assert [one["id"] for one in repo.get("/commits", path="src/a.py")["items"]] == [second, first]
    assert [one["id"] for one in repo.get("/commits", path="src")["items"]] == [third, second, first]
    assert [one["message"] for one in repo.get("/commits")["items"]] == ["third", "second", "first"]


def test_pages_of_commits_fit_together_while_the_branch_moves(repo: Repository) -> None:
    mine = create(repo.http, repo.owner, "moving")
    made = mine.seal(*({"n": str(number).encode()} for number in range(7)))
    page = mine.get("/commits", limit=3)
    mine.seal({"n": b"later"})
    found = [one["id"] for one in page["items"]]
    while page["next_cursor"]:
        page = mine.get("/commits", limit=3, cursor=page["next_cursor"])
        found += [one["id"] for one in page["items"]]
    assert found == made[::-1]


def test_the_walk_of_a_merge_shows_both_sides_once_children_first(http: httpx.Client, owner: Account) -> None:
    mine = create(http, owner, "forked-and-joined")
    (root,) = mine.seal({"base": b"0\n"})
    mine.branch("side", root)
    side = mine.seal({"s": b"1\n"}, {"s": b"2\n"}, branch="side")
    (main,) = mine.seal({"m": b"1\n"})
    (merge,) = mine.seal({"s": b"2\n"}, parents=[side[-1]])
    found = [one["id"] for one in mine.get("/commits")["items"]]
    assert sorted(found) == sorted([root, *side, main, merge])
    for one in mine.get("/commits")["items"]:
        assert all(found.index(one["id"]) < found.index(parent) for parent in one["parents"])


def test_log_really_verifies(relay: Relay, repo: Repository) -> None:
    log = repo.get("/log")["items"]
    assert [one["verified"] for one in log] == [True, True, True]
    for one in log:
        raw = unb64u(one["payload"])
        kernel.verify(raw, unb64u(one["signature"]["value"]), unb64u(one["key"]["public_key"]))
        assert kernel.seal_id(raw) == one["id"] == one["sha"]
    assert repo.get("/log", unverified=1)["items"][0] == {"id": seals(repo)[2], "message": "third"}


def test_log_tells_a_forged_signature(relay: Relay, http: httpx.Client, owner: Account) -> None:
    mine = create(http, owner, "forged")
    (made,) = mine.seal({"f": b"x"})

    async def forge() -> None:
        async with relay.node.db.write() as tx:
            statement = update(seal_table).where(seal_table.c.id == bindparam("seal_id"))
            await tx.run(statement.values(signature=bindparam("forged")), seal_id=made, forged=b"\0" * 64)

    relay.run(forge())
    assert [one["verified"] for one in mine.get("/log")["items"]] == [False]
    assert mine.get(f"/seals/{made}")["verified"] is False


def test_tree_lists_one_level_or_everything(repo: Repository) -> None:
    first, _, third = seals(repo)
    top = {one["path"]: one["kind"] for one in repo.get(f"/tree/{first}")["entries"]}
    assert top == {"README.md": "text", "logo.png": "blob", "src": "dir"}
    below = repo.get(f"/tree/{first}", path="src", recursive=1)
    assert [one["path"] for one in below["entries"]] == ["src/a.py", "src/deep/b.py"]
    whole = repo.get(f"/tree/{third}", recursive=1)
    files = after(FIRST, SECOND, THIRD)
    assert [(one["path"], one["blake3"]) for one in whole["entries"]] == [
        (path, blake3(data).hexdigest()) for path, data in sorted(files.items())
    ]
    entries = {
        one["path"]: tree.TreeEntry(one["kind"], bytes.fromhex(one["blake3"]), one["size"])
        for one in whole["entries"]
    }
    assert tree.root_digest(entries, unb64u(whole["tree_key"])).hex() == whole["content_digest"]


def test_blob_shows_text_and_bytes(repo: Repository) -> None:
    first = seals(repo)[0]
    text = repo.get(f"/blob/{first}/src/deep/b.py")
    assert (text["encoding"], text["content"], text["truncated"]) == ("utf-8", "b = 2\n", False)
    image = repo.get(f"/blob/{first}/logo.png")
    assert image["encoding"] == "base64"
    assert image["size"] == len(PNG)


def test_raw_is_harmless_cacheable_and_has_ranges(repo: Repository) -> None:
    first = seals(repo)[0]
    text = repo.http.get(f"{repo.url}/raw/{first}/src/a.py")
    assert text.content == b"a = 1\n"
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert text.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in text.headers["content-security-policy"]
    assert text.headers["cache-control"] == "public, max-age=60"
    image = repo.http.get(f"{repo.url}/raw/{first}/logo.png")
    assert image.headers["content-type"] == "image/png"
    tag = image.headers["etag"]
    assert (
        repo.http.get(f"{repo.url}/raw/{first}/logo.png", headers={"if-none-match": tag}).status_code == 304
    )
    part = repo.http.get(f"{repo.url}/raw/{first}/logo.png", headers={"range": "bytes=8-11"})
    assert (part.status_code, part.content) == (206, PNG[8:12])
    outside = repo.http.get(f"{repo.url}/raw/{first}/logo.png", headers={"range": "bytes=9999-"})
    assert outside.status_code == 416


def test_raw_never_serves_a_page(http: httpx.Client, owner: Account) -> None:
    mine = create(http, owner, "hostile-pages")
    files = {"x.html": b"<script>alert(1)</script>", "x.svg": b"<svg onload='x()'/>", "x.bin": b"<html>\0"}
    (made,) = mine.seal(files)
    kinds = {path: http.get(f"{mine.url}/raw/{made}/{path}").headers["content-type"] for path in files}
    assert kinds == {
        "x.html": "text/plain; charset=utf-8",
        "x.svg": "text/plain; charset=utf-8",
        "x.bin": "application/octet-stream",
    }
    as_picture = {"sec-fetch-dest": "image"}  # browsers say so of what an `img` loads, and pages cannot
    drawing = http.get(f"{mine.url}/raw/{made}/x.svg", headers=as_picture)
    assert drawing.headers["content-type"] == "image/svg+xml"
    assert "sandbox" in drawing.headers["content-security-policy"]
    assert "Sec-Fetch-Dest" in drawing.headers["vary"]
    page = http.get(f"{mine.url}/raw/{made}/x.html", headers=as_picture)
    assert page.headers["content-type"].startswith("text/plain")
    private = http.get(f"{mine.url}/raw/{made}/x.bin").headers["cache-control"]
    assert private.startswith("private")


def test_archive_is_the_tree_and_the_same_bytes_twice(http: httpx.Client, owner: Account) -> None:
    mine = create(http, owner, "packed")
    files = {
        "a.txt": b"a" * 70_000,
        "a/b.txt": b"",
        "ümläut/" + "long" * 40 + "/" + "name" * 30 + ".txt": "ä\n".encode(),
        "big.bin": bytes(range(256)) * 9000,
    }
    (made,) = mine.seal(files)
    answer = http.get(f"{mine.url}/archive/{made}.tar.gz")
    assert answer.headers["content-type"] == "application/gzip"
    assert http.get(f"{mine.url}/archive/{made}.tar.gz").content == answer.content
    sealed_at = mine.get(f"/seals/{made}")["created_at"]
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(answer.content))) as archive:
        members = archive.getmembers()
        top = f"packed-{made[:12]}"
        assert members[0].name == top
        assert members[0].isdir()
        found = {}
        for member in members[1:]:
            content = archive.extractfile(member)
            assert content is not None
            found[member.name.removeprefix(f"{top}/")] = content.read()
            assert (member.mode, member.uid, member.uname) == (0o644, 0, "")
            assert int(member.mtime) == int(datetime.fromisoformat(sealed_at).timestamp())
    assert found == files
    assert list(found) == sorted(files)


def unpack(content: bytes) -> tuple[list[dict[str, Any]], dict[str, bytes], list[str]]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        names = archive.getnames()
        data = {name: archive.extractfile(name).read() for name in names}  # type: ignore[union-attr]
    assert names[0] == "manifest.jsonl"
    lines = [json.loads(line) for line in data.pop("manifest.jsonl").splitlines()]
    return lines, {name.removeprefix("blobs/"): raw for name, raw in data.items()}, names[1:]


def test_history_pack_holds_every_seal_and_file_and_verifies(http: httpx.Client, owner: Account) -> None:
    mine = create(http, owner, "cloned")
    (root,) = mine.seal(FIRST)
    mine.branch("side", root)
    side = mine.seal({"s": b"side\n"}, branch="side")
    mine.seal(SECOND, THIRD)
    mine.seal({"s": b"side\n"}, parents=[side[0]])
    answer = http.get(f"{mine.url}/history-pack")
    assert answer.headers["content-type"] == "application/x-tar"
    assert int(answer.headers["content-length"]) == len(answer.content)
    lines, blobs, names = unpack(answer.content)
    assert [one["id"] for one in lines] == [one["id"] for one in mine.get("/commits")["items"]]
    assert len(names) == len(set(names))
    assert all(blake3(raw).hexdigest() == name for name, raw in blobs.items())
    key = unb64u(lines[0]["tree_key"])
    files = {one["path"]: (one["kind"], one["blake3"], one["size"]) for one in lines[0]["tree"]}
    for line in lines:
        for path, kind, digest, size in line.get("changes", ()):
            if kind is None:
                del files[path]
            else:
                files[path] = (kind, digest, size)
        entries = {p: tree.TreeEntry(k, bytes.fromhex(d), s) for p, (k, d, s) in files.items()}
        payload = kernel.decode(unb64u(line["payload"]))
        assert tree.root_digest(entries, key).hex() == payload.content_digest
        assert {digest for _, digest, _ in files.values()} <= blobs.keys()


def test_slices_of_a_history_pack_follow_the_link_and_send_files_once(repo: Repository) -> None:
    url: str | None = f"{repo.url}/history-pack?limit=1"
    found: list[str] = []
    sent: list[str] = []
    while url:
        answer = repo.http.get(url)
        lines, blobs, _ = unpack(answer.content)
        assert "tree" in lines[0]
        found += [one["id"] for one in lines]
        sent += blobs
        url = answer.links.get("next", {}).get("url")
    assert found == seals(repo)[::-1]
    assert len(sent) == len(set(sent))
    assert set(sent) == {blake3(data).hexdigest() for data in [*FIRST.values(), *SECOND.values()]}


def test_seals_of_a_deleted_branch_stay_readable(http: httpx.Client, owner: Account) -> None:
    mine = create(http, owner, "pruned")
    (root,) = mine.seal({"f": b"1\n"})
    mine.branch("gone", root)
    (lost,) = mine.seal({"f": b"2\n"}, branch="gone")
    assert http.delete(f"{mine.url}/refs/branch/gone").status_code == 204
    assert http.get(f"{mine.url}/refs/branch/gone").status_code == 404
    assert mine.get(f"/seals/{lost}")["id"] == lost
    assert mine.get(f"/blob/{lost}/f")["content"] == "2\n"


@pytest.mark.parametrize(
    "path",
    [
        "/commits?ref=nowhere",
        "/commits?sha=zz",
        "/commits?sha=" + "0" * 64,
        "/tree/main",
        "/tree/" + "0" * 64,
        "/history-pack?from=main",
        "/archive/main.tar.gz",
        "/seals/abc",
        "/compare?base=main&head=nowhere",
    ],
)
def test_what_is_not_there_is_the_constant_404(repo: Repository, path: str) -> None:
    answer = repo.http.get(repo.url + path)
    assert answer.status_code == 404
    assert answer.content == repo.http.get("/api/v1/nowhere").content


@pytest.mark.parametrize(
    "path",
    [
        "/commits?cursor=AAAA",
        "/commits?limit=0",
        "/commits?limit=99999999999999999999999999",
        "/commits?ref=main&sha=" + "0" * 64,
        "/commits?ref=%00",
        "/log?unverified=maybe",
        "/history-pack?limit=1001",
        "/history-pack?skip=-1",
        "/history-pack?skip=9223372036854775808",
        "/refs?cursor=AAAA",
        "/compare?base=main",
    ],
)
def test_hostile_queries_are_refused_plainly(repo: Repository, path: str) -> None:
    assert repo.http.get(repo.url + path).status_code == 422


@pytest.mark.parametrize("path", ["..%2fx", "a//b", "a%00b", "a%5Cb", "./a", "x" * 300])
def test_paths_that_no_tree_can_hold_are_refused(repo: Repository, path: str) -> None:
    answer = repo.http.get(f"{repo.url}/blob/{seals(repo)[0]}/{path}")
    assert answer.status_code in (404, 422), answer.text


def test_far_cursors_and_skips_end_the_walk(repo: Repository) -> None:
    far = Cursor.write(seals(repo)[2], 2**52)
    assert repo.get("/commits", cursor=far) == {"items": [], "next_cursor": None}
    lines, blobs, _ = unpack(repo.http.get(f"{repo.url}/history-pack?skip=99").content)
    assert (lines, blobs) == ([], {})


def test_anonymous_readers_of_a_public_repository(relay: Relay, repo: Repository) -> None:
    first = seals(repo)[0]
    with relay.client() as anonymous:
        for path in ("/commits", f"/tree/{first}", f"/blob/{first}/README.md", f"/raw/{first}/README.md",
                     f"/archive/{first}.tar.gz", "/history-pack", "/refs"):  # fmt: skip
            assert anonymous.get(repo.url + path).status_code == 200, path
        for path in (
            "",
            "/log",
            f"/seals/{first}",
            f"/seals/{first}/blame/README.md",
            "/compare?base=a&head=b",
        ):
            assert anonymous.get(repo.url + path).status_code == 401, path


def test_an_empty_repository_has_no_history(http: httpx.Client, owner: Account) -> None:
    empty = create(http, owner, "empty-one")
    assert empty.get("/commits") == {"items": [], "next_cursor": None}
    assert http.get(f"{empty.url}/history-pack").status_code == 404
    assert http.get(f"{empty.url}/compare?base=main&head=main").status_code == 404


def test_head_asks_for_no_body(repo: Repository) -> None:
    answer = repo.http.head(f"{repo.url}/raw/{seals(repo)[0]}/logo.png")
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) == len(PNG)


Maker = Callable[..., Account]


def test_private_history_is_hidden(http: httpx.Client, owner: Account, relay: Relay, account: Maker) -> None:
    mine = create(http, owner, "secret-history")
    (made,) = mine.seal({"f": b"x"})
    with relay.client(account()) as stranger:
        of_seal = ("seals/{}", "tree/{}", "blob/{}/f", "raw/{}/f", "archive/{}.tar.gz", "seals/{}/blame/f")
        for path in (
            "/commits",
            "/log",
            "/history-pack",
            "/refs",
            *(f"/{one.format(made)}" for one in of_seal),
        ):
            hidden, missing = (stranger.get(f"/api/v1/repos/{one}{path}") for one in (mine.id, "0" * 32))
            assert (hidden.status_code, hidden.content) == (404, missing.content), path
    assert ok(http.get(f"{mine.url}/blob/{made}/f"))["content"] == "x"


def test_encrypted_repositories_have_seals_but_no_readable_content(
    relay: Relay, http: httpx.Client, owner: Account
) -> None:
    mine = create(http, owner, "sealed-away")
    (made,) = mine.seal({"f": b"x\n"})

    async def encrypt() -> None:
        async with relay.node.db.write() as tx:
            change = update(repo_table).where(repo_table.c.id == bindparam("this"))
            await tx.run(change.values({"class": "private_e2ee"}), this=mine.id)

    relay.run(encrypt())
    assert [one["id"] for one in mine.get("/commits")["items"]] == [made]
    assert mine.get(f"/seals/{made}")["id"] == made
    of_seal = ("tree/{}", "blob/{}/f", "raw/{}/f", "archive/{}.tar.gz", "seals/{}/blame/f")
    for path in ("history-pack", "compare?base=main&head=main", *(one.format(made) for one in of_seal)):
        assert http.get(f"{mine.url}/{path}").status_code == 404, path
