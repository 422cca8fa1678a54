"""Trees against plain dicts: every reading of a tree is what the dict of its entries says."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core import tree
from localstore.core.encoding import digest
from localstore.core.errors import DigestMismatch, NotFound, PathInvalid
from localstore.core.model import limits
from localstore.core.model.seal import PayloadMissing
from localstore.core.tree import TreeEntry, Verification

KEY = bytes(range(32))
Model = dict[str, TreeEntry]

names = st.sampled_from(["a", "a.b", "é", "\U0001f600", "\uffff"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
entries = st.builds(
    TreeEntry,
    st.sampled_from(["text", "blob", "chunked"]),
    st.integers(0, 5).map(lambda n: digest(bytes([n]))),
    st.integers(0, 3),
)


def clashes(model: Mapping[str, TreeEntry]) -> bool:
    return any(other.startswith(path + "/") for path in model for other in model)


models = st.dictionaries(paths, entries, max_size=8).filter(lambda model: not clashes(model))


class Store:
    """Directory objects in memory, counting what is read."""

    def __init__(self) -> None:
        self.objects: dict[bytes, bytes] = {}
        self.read: list[bytes] = []

    def keep(self, built: tree.Built) -> bytes:
        self.objects.update(built.directories)
        return built.root

    def load(self, digests: list[bytes]) -> dict[bytes, bytes]:
        self.read += digests
        return {one: self.objects[one] for one in digests if one in self.objects}


def text(content: str) -> TreeEntry:
    return TreeEntry("text", digest(content.encode()), len(content))


@settings(max_examples=60, deadline=None)
@given(models, st.randoms(use_true_random=False))
def test_build_equals_updates_in_any_order(model: Model, random) -> None:
    store = Store()
    order = list(model.items())
    random.shuffle(order)
    root = None
    for path, entry in order:
        root = store.keep(tree.run(tree.update(root, {path: entry}, KEY), store.load))
    built = tree.build(model, KEY)
    assert (root or tree.EMPTY_ROOT) == built.root == tree.root_digest(model, KEY)
    assert built.directories.items() <= store.objects.items()


@settings(max_examples=80, deadline=None)
@given(models, st.dictionaries(paths, st.none() | entries, max_size=6))
def test_update_is_the_dict_update_or_refuses_a_clash(
    model: Model, changes: dict[str, TreeEntry | None]
) -> None:
    after = {path: entry for path, entry in {**model, **changes}.items() if entry is not None}
    store = Store()
    root = store.keep(tree.build(model, KEY))
    if clashes(after):
        with pytest.raises(PathInvalid):
            tree.run(tree.update(root, changes, KEY), store.load)
        with pytest.raises(PathInvalid):
            tree.build(after, KEY)
        return
    built = tree.run(tree.update(root, changes, KEY), store.load)
    assert built.root == tree.root_digest(after, KEY)
    assert tree.run(tree.walk(store.keep(built)), store.load) == after


@settings(max_examples=80, deadline=None)
@given(models, models)
def test_diff_is_the_difference_of_the_dicts(a: Model, b: Model) -> None:
    store = Store()
    roots = store.keep(tree.build(a, KEY)), store.keep(tree.build(b, KEY))
    found = tree.run(tree.diff(*roots), store.load)
    assert found == {p: (a.get(p), b.get(p)) for p in sorted(a.keys() | b.keys()) if a.get(p) != b.get(p)}


@settings(max_examples=80, deadline=None)
@given(models, models, models)
def test_several_sides_are_compared_in_one_walk(base: Model, a: Model, b: Model) -> None:
    store = Store()
    root, *sides = (store.keep(tree.build(one, KEY)) for one in (base, a, b, base))
    alone = [tree.run(tree.diff(root, side), store.load) for side in sides]
    store.read.clear()
    known: tree.Known = {}
    found = tree.run(tree.diffs(root, sides, known), store.load)
    assert [one.changes for one in found] == alone
    assert len(store.read) == len(set(store.read)) == len(known)
    for one, side in zip(found, sides, strict=True):
        there = tree.run(tree.directories(side), store.load)
        digests = {path: known.get(digest) for path, digest in one.directories.items()}
        assert all(
            here is None if path not in there else here is not None and here.children == there[path]
            for path, here in digests.items()
        )


@settings(max_examples=80, deadline=None)
@given(models, models, models)
def test_directories_of_another_tree_save_their_digests_and_change_nothing(
    base: Model, a: Model, b: Model
) -> None:
    """The tree at a, with some of the changes that lead to b."""
    store = Store()
    root, mine, other = (store.keep(tree.build(one, KEY)) for one in (base, a, b))
    known: tree.Known = {}
    _, theirs = tree.run(tree.diffs(root, [mine, other], known), store.load)
    to_b = tree.run(tree.diff(mine, other), store.load)
    for changes in ({path: new for path, (_, new) in to_b.items()}, {}):
        alone = tree.run(tree.update(mine, changes, KEY), store.load)
        assert tree.run(tree.update(mine, changes, KEY, known, theirs.directories), store.load) == alone


@settings(max_examples=80, deadline=None)
@given(models, st.sets(paths, max_size=5), paths)
def test_lookup_walk_and_list_agree_with_the_dict(model: Model, wanted: set[str], prefix: str) -> None:
    store = Store()
    root = store.keep(tree.build(model, KEY))
    assert tree.run(tree.lookup(root, wanted), store.load) == {p: model[p] for p in wanted if p in model}
    below = {p: e for p, e in model.items() if p == prefix or p.startswith(prefix + "/")}
    walked = tree.run(tree.walk(root, prefix, Verification(KEY)), store.load)
    assert list(walked.items()) == sorted(below.items())
    children = {p[len(prefix) + 1 :].split("/")[0] for p in below if p != prefix}
    if children:
        listed = tree.run(tree.list_directory(root, prefix), store.load)
        assert [child.name for child in listed] == sorted(children)
        assert sum(child.size for child in listed) == sum(entry.size for entry in below.values())
    else:
        with pytest.raises(NotFound):
            tree.run(tree.list_directory(root, prefix), store.load)


def test_empty_tree_has_a_fixed_digest_and_no_objects() -> None:
    assert tree.build({}, KEY) == tree.Built(tree.EMPTY_ROOT, {})
    store = Store()
    root = store.keep(tree.build({"a/b": text("x")}, KEY))
    assert tree.run(tree.update(root, {"a/b": None}, KEY), store.load) == tree.Built(tree.EMPTY_ROOT, {})
    for empty in (None, tree.EMPTY_ROOT):
        assert tree.run(tree.walk(empty), {}.__getitem__) == {}
        assert tree.run(tree.list_directory(empty), {}.__getitem__) == []


def test_one_change_reads_and_writes_only_the_directories_on_its_path() -> None:
    store = Store()
    model = {f"d{i}/e{j}/f{k}": text(f"{i}{j}{k}") for i in range(5) for j in range(5) for k in range(5)}
    root = store.keep(tree.build(model, KEY))
    built = tree.run(tree.update(root, {"d1/e2/f3": text("new")}, KEY), store.load)
    assert len(store.read) == len(built.directories) == 3
    store.keep(built)
    store.read.clear()
    tree.run(tree.diff(root, built.root), store.load)
    assert len(store.read) == 6
    assert tree.run(tree.update(root, {"d1/e2/f3": text("123")}, KEY), store.load) == tree.Built(root, {})


def test_what_one_step_read_the_next_one_does_not_ask_for() -> None:
    store = Store()
    model = {f"d{i}/e{j}/f{k}": text(f"{i}{j}{k}") for i in range(3) for j in range(3) for k in range(3)}
    root = store.keep(tree.build(model, KEY))
    known: tree.Known = {}
    assert tree.run(tree.lookup(root, ["d1/e2/f0"], known), store.load) == {"d1/e2/f0": model["d1/e2/f0"]}
    assert len(store.read) == len(known) == 3
    changes = {"d1/e2/f1": text("new"), "d0/e0/f0": None}
    alone = tree.run(tree.update(root, changes, KEY), store.load)
    store.read.clear()
    assert tree.run(tree.update(root, changes, KEY, known), store.load) == alone
    assert len(store.read) == 2
    assert len(known) == 5
    with pytest.raises(PayloadMissing):
        tree.run(tree.lookup(root, ["d2/e0/f0"], known), lambda wanted: {})


def test_file_and_directory_may_change_places_in_one_update() -> None:
    store = Store()
    root = store.keep(tree.build({"a": text("1"), "b/c": text("2")}, KEY))
    changes = {"a": None, "a/x": text("3"), "b": text("4"), "b/c": None}
    built = tree.run(tree.update(root, changes, KEY), store.load)
    assert built.root == tree.root_digest({"a/x": text("3"), "b": text("4")}, KEY)


@pytest.mark.parametrize(
    ("base", "changes"),
    [
        ({"a": "1"}, {"a/b": "2"}),
        ({"a": "1"}, {"a/b/c": "2"}),
        ({"a/b": "1"}, {"a": "2"}),
        ({"a/b": "1", "a/c": "1"}, {"a": "2", "a/b": None}),
        ({}, {"a": "1", "a/b": "2"}),
    ],
)
def test_file_and_directory_of_one_name_are_refused(
    base: dict[str, str], changes: dict[str, str | None]
) -> None:
    built = tree.build({path: text(content) for path, content in base.items()}, KEY)
    wanted = {path: None if content is None else text(content) for path, content in changes.items()}
    with pytest.raises(PathInvalid, match="at once"):
        tree.run(tree.update(built.root, wanted, KEY), lambda _: built.directories)


def test_children_sort_by_their_bytes_in_utf8() -> None:
    names = ["a", "a.b", "\u00e9", "\uffff", "\U0001f600"]
    built = tree.build({name: text("1") for name in reversed(names)}, KEY)
    listed = tree.run(tree.list_directory(built.root), lambda _: built.directories)
    assert [child.name for child in listed] == names == sorted(names, key=str.encode)


def test_key_path_kind_and_size_all_enter_the_digest() -> None:
    one = TreeEntry("text", digest(b"x"), 1)
    roots = {
        tree.root_digest({"a": one}, KEY),
        tree.root_digest({"a": one}, bytes(32)),
        tree.root_digest({"b": one}, KEY),
        tree.root_digest({"a/a": one}, KEY),
        tree.root_digest({"a": TreeEntry("blob", one.digest, 1)}, KEY),
        tree.root_digest({"a": TreeEntry("text", one.digest, 2)}, KEY),
        tree.root_digest({"a": TreeEntry("text", digest(b"y"), 1)}, KEY),
    }
    assert len(roots) == 7


def filtered_objects(
    store: Store, root: bytes, may_see: Callable[[str, tree.Kind], bool]
) -> dict[bytes, bytes]:
    """Every directory that the reader reaches, as the reader gets it."""
    shown: dict[bytes, bytes] = {}
    level = {"": root}
    while level:
        below = {}
        for path, one in level.items():
            view = tree.filter_directory(tree.decode(store.objects[one]), path, KEY, may_see)
            shown[one] = tree.encode(view)
            below |= {f"{path}/{c.name}".lstrip("/"): c.digest for c in view.children if c.kind == "dir"}
        level = below
    return shown


def test_fork_carries_hidden_entries_under_its_own_key() -> None:
    store = Store()
    root = store.keep(tree.build({"a/open": text("1"), "a/shut": text("2"), "z/shut": text("3")}, KEY))
    shown = filtered_objects(store, root, lambda path, kind: path in ("a", "a/open", "z"))

    def load(wanted: list[bytes]) -> dict[bytes, bytes]:
        return {one: shown[one] for one in wanted}

    entries = tree.run(tree.walk(root), load)
    hidden = tree.run(tree.hidden_entries(root), load)
    assert hidden.keys() == {"a", "z"}
    assert tree.root_digest(entries, KEY, hidden) == root
    fork = tree.build(entries, bytes(32), hidden)
    assert fork.root == tree.root_digest(entries, bytes(32), hidden) != root
    loaded = tree.run(tree.walk(fork.root, "", Verification(bytes(32))), lambda wanted: fork.directories)
    assert loaded == entries
    assert tree.run(tree.hidden_entries(fork.root), lambda wanted: fork.directories) == hidden
    changed = tree.run(
        tree.update(fork.root, {"z/new": text("4")}, bytes(32)), lambda wanted: fork.directories
    )
    assert changed.root == tree.root_digest({**entries, "z/new": text("4")}, bytes(32), hidden)
    with pytest.raises(PathInvalid):
        tree.build({"a": text("1")}, KEY, hidden)


@settings(max_examples=60, deadline=None)
@given(models.filter(bool), st.sets(paths, max_size=6))
def test_filtered_tree_verifies_without_the_key_and_shows_only_the_visible(
    model: Model, hidden: set[str]
) -> None:
    store = Store()
    built = tree.build(model, KEY)
    root = store.keep(built)
    visible = {p: e for p, e in model.items() if p not in hidden}

    def may_see(path: str, kind: tree.Kind) -> bool:
        return any(p == path or p.startswith(path + "/") for p in visible)

    shown = filtered_objects(store, root, may_see)
    walked = tree.run(tree.walk(root, "", Verification()), lambda wanted: {w: shown[w] for w in wanted})
    assert walked == visible
    secret = {e.digest for p, e in model.items() if p in hidden} - {e.digest for e in visible.values()}
    assert not any(one in raw for one in secret for raw in shown.values())


def test_hidden_sizes_do_not_show_in_a_directory() -> None:
    built = tree.build(
        {"d/open": TreeEntry("text", digest(b"x"), 5), "d/secret": TreeEntry("text", digest(b"y"), 999)}, KEY
    )
    view = tree.filter_directory(tree.decode(built.directories[built.root]), "", KEY, lambda path, kind: True)
    assert [child.size for child in view.children] == [0]
    tree.verify(view, built.root, "")


def test_tampered_directory_is_noticed() -> None:
    store = Store()
    root = store.keep(tree.build({"a/b": text("1"), "c": text("2")}, KEY))
    other = tree.build({"a/b": text("1"), "c": text("3")}, KEY)
    store.objects[root] = other.directories[other.root]
    with pytest.raises(DigestMismatch):
        tree.run(tree.walk(root, "", Verification(KEY)), store.load)


def test_hidden_entries_of_a_base_survive_an_update() -> None:
    built = tree.build({"a": text("1"), "b": text("2")}, KEY)
    view = tree.filter_directory(
        tree.decode(built.directories[built.root]), "", KEY, lambda path, kind: path == "a"
    )
    updated = tree.run(
        tree.update(built.root, {"a": text("3")}, KEY), lambda wanted: {built.root: tree.encode(view)}
    )
    assert updated.root == tree.root_digest({"a": text("3"), "b": text("2")}, KEY)


def test_missing_directory_is_named() -> None:
    built = tree.build({"a/b": text("1")}, KEY)
    with pytest.raises(PayloadMissing) as caught:
        tree.run(tree.walk(built.root), lambda wanted: {})
    assert caught.value.extra["missing"] == [built.root.hex()]


UNSAFE = ["", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "a\\b", "a\0", "a\n", "a\x7f", "a\ud800"]
TOO_LONG = ["x" * 256, "é" * 128, "/".join("a" * (limits.PATH_DEPTH + 1)), "/".join(["x" * 250] * 5)]


@pytest.mark.parametrize("path", UNSAFE + TOO_LONG)
def test_unsafe_paths_are_refused(path: str) -> None:
    for make in (tree.build, tree.root_digest):
        with pytest.raises(PathInvalid):
            make({path: text("1")}, KEY)
    with pytest.raises(PathInvalid):
        tree.run(tree.update(None, {path: text("1")}, KEY), lambda wanted: {})


@pytest.mark.parametrize(
    "path", ["a", "x" * 255, "é" * 127, "...", ".a", "a b", "/".join("a" * 64), "/".join(["x" * 255] * 4)]
)
def test_paths_at_the_limits_are_held(path: str) -> None:
    built = tree.build({path: text("1")}, KEY)
    assert tree.run(tree.walk(built.root), lambda wanted: built.directories) == {path: text("1")}


D = digest(b"x")


def test_root_digest_follows_the_documented_layout() -> None:
    def entry(path: str, kind: bytes, content: bytes, size: int) -> bytes:
        salt = blake3(path.encode(), key=KEY).digest()
        name = path.split("/")[-1].encode()
        header = b"svc-tree-entry-v1\n" + salt + kind + len(name).to_bytes(4, "big") + name
        return digest(header + content + size.to_bytes(8, "big"))

    def directory(*children: bytes) -> bytes:
        return digest(b"svc-tree-dir-v1\n" + b"".join(sorted(children)))

    below = directory(entry("a/é", b"t", D, 3), entry("a/b", b"c", D, 4))
    root = directory(entry("a", b"d", below, 0), entry("b", b"b", D, 1 << 40))
    model = {
        "a/é": TreeEntry("text", D, 3),
        "a/b": TreeEntry("chunked", D, 4),
        "b": TreeEntry("blob", D, 1 << 40),
    }
    assert tree.root_digest(model, KEY) == root
    assert directory() == tree.EMPTY_ROOT


def test_golden_digests() -> None:
    model = {"README.md": text("hello\n"), "src/é.py": text("1"), "data.bin": TreeEntry("blob", D, 1 << 40)}
    built = tree.build(model, KEY)
    assert tree.EMPTY_ROOT.hex() == "940f059cdded967da4fd83043a60857387f071476196706d9b3920e82b85d128"
    assert (
        tree.path_salt("src/é.py", KEY).hex()
        == "693013cc0d885e42d2f3db37f0e31163490fd47b23863b16c788cf383a4789f3"
    )
    assert built.root.hex() == "c606c2d97744ff6eec9e2127284bbe04c734946e614bdb511c77daa9d05b6e8c"
    assert (
        digest(built.directories[built.root]).hex()
        == "f262cb31145ff0a53c4870709784958227aa3d62ba3f266c70c31eb8b9b99529"
    )
