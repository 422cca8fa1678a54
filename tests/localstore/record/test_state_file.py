"""`state.json` after a seal: changed where the seal changed it, it is as if it were written anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localstore.core.encoding import hex_digest
from localstore.folder import link
from localstore.folder.link import SealedState
from localstore.record import state_file
from localstore.record.state_file import replace_digests
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place

NAMES = ["a", "a/b", ",", ":", ',"', '":"', "{", "tree", "last_seal", "v", "ü", "😀", "\\", "d/tree", "a b"]
PATHS = st.sampled_from(NAMES) | st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=4)
SEALS = st.none() | st.integers().map(lambda number: hex_digest(b"%d" % number))
TREES = st.dictionaries(PATHS, st.sampled_from("0123").map(lambda one: hex_digest(one.encode())), min_size=1)


def state(seal: str | None, tree: dict[str, str]) -> bytes:
    return link.encode_state(SealedState(last_seal=seal, tree={path: tree[path] for path in sorted(tree)}))


@given(SEALS, SEALS, TREES, st.data())
def test_any_change_of_digests(
    before: str | None, after: str | None, tree: dict[str, str], data: st.DataObject
) -> None:
    digests = data.draw(st.dictionaries(st.sampled_from(sorted(tree)), st.just(hex_digest(b"new"))))
    made = replace_digests(state(before, tree), after, digests)
    assert made is None or b"".join(made) == state(after, tree | digests)
    if not any(set(path) & set(',:"') for path in tree):
        assert made is not None


@given(TREES, PATHS)
def test_a_file_that_is_not_there(tree: dict[str, str], path: str) -> None:
    if path not in tree:
        assert replace_digests(state(None, tree), None, {path: hex_digest(b"new")}) is None


def test_a_name_that_looks_like_what_is_between_names() -> None:
    tree = {",": hex_digest(b"1"), ":": hex_digest(b"2"), "x": hex_digest(b"3")}
    for path in tree:
        made = replace_digests(state(None, tree), None, {path: hex_digest(b"new")})
        assert made is None or b"".join(made) == state(None, tree | {path: hex_digest(b"new")})


@pytest.fixture
def ann(tmp_path: Path) -> Place:
    place = Place(tmp_path, ModelRelay(), "ann")
    for name in "abc":
        place.write(f"{name}.txt", "one\n")
    place.push()
    return place


def tree_of(place: Place) -> dict[str, str]:
    return {path: hex_digest(data) for path, data in place.files().items()}


def test_pushes_of_edits_new_files_and_deletes(ann: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def noted(*given: object) -> object:
        made.append(replace_digests(*given))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(state_file, "replace_digests", noted)
    ann.write("b.txt", "two\n")
    sealed = ann.push().seal
    assert link.read_state(ann.folder) == SealedState(last_seal=sealed, tree=tree_of(ann))
    assert made.pop() is not None
    ann.write("d.txt", "one\n")
    (ann.folder / "a.txt").unlink()
    sealed = ann.push().seal
    assert link.read_state(ann.folder) == SealedState(last_seal=sealed, tree=tree_of(ann))


def test_what_somebody_wrote_into_it_is_not_kept(ann: Place) -> None:
    path = ann.folder / ".svc" / "state.json"
    path.write_bytes(path.read_bytes().replace(hex_digest(b"one\n").encode(), hex_digest(b"lie").encode()))
    ann.write("b.txt", "two\n")
    ann.push()
    assert link.read_state(ann.folder).tree == tree_of(ann)
