from __future__ import annotations

import json
from pathlib import Path

import pytest

from localstore.errors import LinkDamaged, NotLinked
from localstore.folder import link
from localstore.folder.link import RepoLink, SealedState

REPO = RepoLink(server="https://example.org", repo_id="r1", repo="a/b", branch="main", class_="public")


def test_the_files_are_plain_json_with_the_contracts_members(tmp_path: Path) -> None:
    link.write_repo(tmp_path, REPO)
    link.write_state(tmp_path, SealedState(last_seal="a" * 64, tree={"x": "b" * 64}))
    assert json.loads((tmp_path / ".svc/repo.json").read_text()) == {
        "v": 1, "server": "https://example.org", "repo_id": "r1", "repo": "a/b", "branch": "main",
        "class": "public",
    }  # fmt: skip
    assert json.loads((tmp_path / ".svc/state.json").read_text()) == {
        "v": 1, "last_seal": "a" * 64, "tree": {"x": "b" * 64},
    }  # fmt: skip
    written = sorted(path.name for path in (tmp_path / ".svc").iterdir())
    assert written == [".gitignore", "repo.json", "state.json"]
    assert (tmp_path / ".svc/.gitignore").read_text() == "*\n"
    assert (tmp_path / ".svc/repo.json").stat().st_mode & 0o777 == 0o644
    assert link.read_repo(tmp_path) == REPO


def test_the_link_is_found_from_below(tmp_path: Path) -> None:
    link.write_repo(tmp_path, REPO)
    (tmp_path / "a/b").mkdir(parents=True)
    assert link.find(tmp_path / "a/b") == tmp_path.resolve()
    with pytest.raises(NotLinked):
        link.find(tmp_path.parent)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"\xff", b'{"v": 2, "last_seal": null, "tree": {}}', b'{"tree": {"a": 1}}']
)
def test_a_damaged_file_is_refused_with_the_way_out(tmp_path: Path, data: bytes) -> None:
    link.write_repo(tmp_path, REPO)
    (tmp_path / ".svc/state.json").write_bytes(data)
    with pytest.raises(LinkDamaged, match="repo init"):
        link.read_state(tmp_path)


def test_nesting_is_damage(tmp_path: Path) -> None:
    """A folder may come from a stranger; members that this svc does not know are skipped, however deep."""
    link.write_repo(tmp_path, REPO)
    (tmp_path / ".svc/repo.json").write_bytes(b'{"more":' * 200_000)
    with pytest.raises(LinkDamaged, match="repo init"):
        link.read_repo(tmp_path)


def test_a_digest_that_is_none_is_damage(tmp_path: Path) -> None:
    link.write_state(tmp_path, SealedState(last_seal=None, tree={"x": "zz"}))
    with pytest.raises(LinkDamaged):
        link.read_state(tmp_path)
