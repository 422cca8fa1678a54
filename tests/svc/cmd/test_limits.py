"""The limits of files, with real files through the real commands."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

import pytest

from localstore.core.model.limits import BLOB_FILE, BLOB_TREE, TEXT_FILE
from tests.svc.conftest import Svc

HEAD = 64  # random bytes at the start: the rest of a binary compresses to nothing


def text(name: str, size: int) -> None:
    line = b"0123456789abcde\n" * 64
    with Path(name).open("wb") as file:
        for _ in range(size // len(line)):
            file.write(line)
        file.write(line[: size % len(line)])


def binary(name: str, size: int) -> None:
    with Path(name).open("wb") as file:
        file.write(b"\0" + secrets.token_bytes(HEAD - 1))
        file.truncate(size)


@pytest.fixture
def repo(alice: Svc) -> str:
    """A linked folder of a repository of kind app."""
    name = f"{os.environ['TEST_HANDLE']}/files"
    assert alice("repo", "create", "files").code == 0
    assert alice("repo", "init", "--repo", name).code == 0
    return name


def sealed(svc: Svc, repo: str) -> dict[str, int]:
    """Paths of the head's tree with their sizes, from the server."""
    repo_id = json.loads(svc("repo", "view", repo, "--json", "id").out)["id"]
    head = json.loads(svc("log", "--json", "id").out)[0]["id"]
    listed = svc("repo", "api", f"/api/v1/repos/{repo_id}/tree/{head}?recursive=1")
    assert listed.code == 0, listed.err
    return {item["path"]: item["size"] for item in json.loads(listed.out)["entries"]}


def test_files_at_their_cap_are_pushed_and_one_byte_more_is_reported(alice: Svc, repo: str) -> None:
    text("most.txt", TEXT_FILE)
    text("more.txt", TEXT_FILE + 1)
    binary("most.bin", BLOB_FILE)
    binary("more.bin", BLOB_FILE + 1)
    answer = alice("push", "-m", "caps")
    assert answer.code == 0, answer.err
    assert sealed(alice, repo) == {"most.txt": TEXT_FILE, "most.bin": BLOB_FILE}
    for name in ("more.txt", "more.bin"):
        assert name in answer.out + answer.err
    assert "most" not in answer.err.replace("at most", "")


def test_binaries_of_a_tree_fit_together_or_are_reported(alice: Svc, repo: str) -> None:
    whole = BLOB_TREE // BLOB_FILE
    for number in range(whole + 1):
        binary(f"{number:02}.bin", BLOB_FILE)
    text("zz.txt", 100)
    answer = alice("push", "-m", "tree")
    assert answer.code == 0, answer.err
    kept = sealed(alice, repo)
    assert set(kept) == {f"{number:02}.bin" for number in range(whole)} | {"zz.txt"}
    assert f"{whole:02}.bin" in answer.out + answer.err
