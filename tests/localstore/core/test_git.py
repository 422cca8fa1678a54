"""Objects of git, compared with what git itself makes of the same."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localstore.core.errors import Invalid
from localstore.core.git import objects
from localstore.core.git.objects import EMPTY_TREE, Kind
from localstore.core.git.pack import GitPackWriter, pack_header, pack_index
from localstore.core.git.trees import Entry, Trees, decode, encode

WHEN = 1_700_000_000
ENVIRONMENT = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent", "LC_ALL": "C"}

names = st.binary(min_size=1, max_size=6).filter(
    lambda name: not {0, 47} & set(name) and name not in (b".", b"..", b".git")
)
segments = st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=3).filter(
    lambda name: name not in (".", "..")
)
paths = st.lists(segments, min_size=1, max_size=3).map("/".join)


def git(folder: Path, *words: str, given: bytes = b"") -> bytes:
    return subprocess.run(
        ["git", "-C", str(folder), *words], input=given, env=ENVIRONMENT, capture_output=True, check=True
    ).stdout


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bare")
    git(folder, "init", "-q", "--bare")
    return folder


def packed(folder: Path, stored: list[tuple[Kind, bytes]]) -> list[bytes]:
    """Put objects into a pack of ours in a repository of git. Returns their ids."""
    raw = bytearray()
    writer = GitPackWriter(raw.extend)
    ids = [writer.add(kind, data) for kind, data in stored]
    raw[:12] = pack_header(len(writer.entries))
    raw += hashlib.sha1(raw).digest()
    name = folder / "objects/pack" / f"pack-{raw[-20:].hex()}"
    name.with_suffix(".pack").write_bytes(raw)
    name.with_suffix(".idx").write_bytes(pack_index(writer.entries, bytes(raw[-20:])))
    git(folder, "verify-pack", str(name.with_suffix(".idx")))
    return ids


@given(st.binary(max_size=300))
def test_ids_are_those_of_git(data: bytes) -> None:
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data).digest()
    assert objects.object_id("blob", data) == blob
    assert objects.object_id("tree", b"") == EMPTY_TREE


@given(st.dictionaries(names, st.tuples(st.booleans(), st.binary(min_size=20, max_size=20))))
def test_trees_are_read_as_they_were_written(children: dict[bytes, tuple[bool, bytes]]) -> None:
    tree = {name: Entry(*one) for name, one in children.items()}
    assert decode(encode(tree)) == tree


@pytest.mark.parametrize(
    "raw", [b"100644 a", b"100644 a\0" + bytes(19), b"100755 a\0" + bytes(20), b"100644 \0" + bytes(20)]
)
def test_other_trees_are_refused(raw: bytes) -> None:
    with pytest.raises(Invalid):
        decode(raw)


def test_packs_and_trees_are_those_of_git(bare: Path) -> None:
    """Directories and files in every order of names that git has a rule for."""
    blob = objects.object_id("blob", b"x")
    made: dict[bytes, bytes] = {}
    trees = Trees(made.__getitem__, made.__setitem__)
    every = ["a", "a.b", "b/c", "b.c", "b-c", "b0", "z/z/z", "é", "日/本"]
    root = trees.update(EMPTY_TREE, dict.fromkeys(every, blob))
    packed(bare, [("blob", b"x"), *(("tree", raw) for raw in made.values())])
    listed = git(bare, "ls-tree", "-r", "-z", root.hex())
    assert sorted(line.split(b"\t")[1].decode() for line in listed.split(b"\0") if line) == sorted(every)
    written = git(bare, "mktree", "-z", given=git(bare, "ls-tree", "-z", root.hex()))
    assert written.strip().decode() == root.hex()
    assert git(bare, "fsck", "--strict", "--no-dangling") == b""


@given(
    st.lists(
        st.dictionaries(paths, st.one_of(st.none(), st.sampled_from([b"1", b"2"])), max_size=4), max_size=4
    )
)
def test_a_tree_changed_in_steps_is_the_tree_made_at_once(steps: list[dict[str, bytes | None]]) -> None:
    made: dict[bytes, bytes] = {}
    trees = Trees(made.__getitem__, made.__setitem__)
    state: dict[str, bytes] = {}
    tree = EMPTY_TREE
    for step in steps:
        change: dict[str, bytes | None] = {}
        for path, data in step.items():
            inside = [one for one in state if one.startswith(f"{path}/") or path.startswith(f"{one}/")]
            beside = [one for one in change if one.startswith(f"{path}/") or path.startswith(f"{one}/")]
            if (data is None and path not in state) or any(change[one] is not None for one in beside):
                continue
            if data is not None:
                change |= dict.fromkeys(inside)
            change[path] = None if data is None else objects.object_id("blob", data)
        for path, blob in change.items():
            state.pop(path, None)
            if blob is not None:
                state[path] = blob
        tree = trees.update(tree, change)
    fresh = Trees({}.__getitem__, lambda one, raw: None)
    assert tree == fresh.update(EMPTY_TREE, dict(state))


def test_a_pack_is_read_by_git(bare: Path) -> None:
    contents = [b"", b"a", b"x" * 15, b"x" * 16, os.urandom(3000), b"y" * 200_000]
    ids = packed(bare, [("blob", data) for data in contents])
    for found, data in zip(ids, contents, strict=True):
        assert git(bare, "cat-file", "blob", found.hex()) == data


def test_a_large_blob_comes_in_pieces(bare: Path) -> None:
    data = os.urandom(100_000)
    raw = bytearray()
    writer = GitPackWriter(raw.extend)
    blob = writer.begin(len(data))
    for at in range(0, len(data), 7000):
        blob.feed(data[at : at + 7000])
    found = blob.finish()
    assert found == objects.object_id("blob", data)
    raw[:12] = pack_header(1)
    raw += hashlib.sha1(raw).digest()
    git(bare, "index-pack", "--stdin", given=bytes(raw))
    assert git(bare, "cat-file", "blob", found.hex()) == data


def test_an_index_names_offsets_beyond_two_gib(tmp_path: Path) -> None:
    """As a pack of more than 2 GiB has them: the table is what git reads of it."""
    from localstore.core.git.pack import PackEntry

    entries = [
        PackEntry(bytes([9]) * 20, 12, 1),
        PackEntry(bytes([3]) * 20, 2**31, 2),
        PackEntry(bytes([5]) * 20, 2**40, 3),
    ]
    path = tmp_path / "big.idx"
    path.write_bytes(pack_index(entries, bytes(20)))
    shown = subprocess.run(
        ["git", "show-index"], input=path.read_bytes(), env=ENVIRONMENT, capture_output=True, check=True
    )
    offsets = [int(line.split()[0]) for line in shown.stdout.splitlines()]
    assert offsets == [2**31, 2**40, 12]


@given(
    name=st.text(max_size=30),
    email=st.text(max_size=30),
    text=st.text(max_size=60),
    message=st.text(max_size=60),
)
def test_git_takes_every_commit(bare: Path, name: str, email: str, text: str, message: str) -> None:
    """Whatever an account is called and a seal says."""
    committer = objects.format_signature(objects.person(name, email), WHEN)
    raw = objects.commit(EMPTY_TREE, [], objects.author(text, WHEN), committer, message)
    written = git(bare, "hash-object", "-t", "commit", "-w", "--stdin", given=raw)
    assert written.strip().decode() == objects.object_id("commit", raw).hex()
    seen = git(bare, "cat-file", "commit", written.strip().decode())
    assert seen == raw


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Ada", f"Ada <> {WHEN} +0000"),
        ("Ada L. <ada@example.org>", f"Ada L <ada@example.org> {WHEN} +0000"),
        ("Ada <ada@x> 12 -0330", "Ada <ada@x> 12 -0330"),
        ("Ada <ada@x> 012 +0000", f"Ada <ada@x> {WHEN} +0000"),
        ("Ada <ada@x> 12 +051800", f"Ada <ada@x> {WHEN} +0000"),
        ("<>\n", f"unknown <> {WHEN} +0000"),
    ],
)
def test_authors(text: str, line: str) -> None:
    assert objects.author(text, WHEN) == line


def test_golden_commit() -> None:
    """Ids are for ever: these bytes never change."""
    raw = objects.commit(
        EMPTY_TREE,
        [bytes(range(20))],
        objects.author("Ada <ada@example.org>", WHEN),
        objects.format_signature(objects.person("mira", "0190@svc.example"), WHEN),
        "One line",
    )
    assert raw == (
        b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nparent 000102030405060708090a0b0c0d0e0f10111213\n"
        b"author Ada <ada@example.org> 1700000000 +0000\ncommitter mira <0190@svc.example> 1700000000 +0000\n"
        b"\nOne line\n"
    )
