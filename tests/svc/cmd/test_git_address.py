"""The address by which git clones: shown where git can, and taken by `svc repo clone`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from localstore.core.errors import Invalid
from localstore.core.names import parse_repo
from tests.svc.conftest import Svc


def test_view_names_it_and_clone_takes_it(alice: Svc, node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = os.environ["TEST_HANDLE"]
    assert alice("repo", "create", "notes", "--public").code == 0
    Path("a.txt").write_text("one\n")
    assert alice("repo", "init", f"{handle}/notes").code == 0
    assert alice("push", "-m", "first").code == 0
    address = f"{node}/{handle}/notes.git"
    assert f"git\tgit clone {address}\n" in alice("repo", "view").out
    assert json.loads(alice("repo", "view", "--json", "clone_url,git").out) == {
        "clone_url": address,
        "git": f"git clone {address}",
    }
    subprocess.run(["git", "clone", "-q", address, "by-git"], check=True, timeout=60)
    monkeypatch.delenv("SVC_SERVER")
    monkeypatch.setenv("SVC_HOME", str(Path("../elsewhere").absolute()))
    monkeypatch.chdir(Path("..").absolute())
    for number, typed in enumerate((address, address.removesuffix(".git"), f"{address}/", address.upper())):
        told = alice("repo", "clone", typed, f"clone-{number}")
        assert told.code == 0, told
        assert Path(f"clone-{number}/a.txt").read_text() == "one\n"
        assert Path("work/by-git/a.txt").read_text() == "one\n"
    assert alice("repo", "view", address, "--jq", ".full_name").out == f"{handle}/notes\n"
    told = alice("repo", "clone", address, "other", "--server", "https://other.example")
    assert told.code == 2
    assert "use one of them" in told.err


@pytest.mark.parametrize("typed", ["a/b/c", "node/alice/notes"])
@pytest.mark.parametrize("command", [("repo", "view"), ("repo", "clone"), ("pr", "list", "-R")])
def test_a_word_is_no_host(svc: Svc, command: tuple[str, ...], typed: str) -> None:
    told = svc(*command, typed)
    assert told.code == 2
    assert "write OWNER/NAME, or HOST/OWNER/NAME with a host that has a dot or a port" in told.err


@pytest.mark.parametrize(
    "typed",
    ["https://h", "https://h/a", "https://h/a/b/c", "https:///a/b", "https://h/a/b.git.git", "ftp://h/a/b"],
)
def test_what_is_no_address(typed: str) -> None:
    with pytest.raises(Invalid):
        parse_repo(typed)


def test_addresses_keep_their_scheme() -> None:
    assert parse_repo("https://Node.Example:8443/Alice/Notes.git") == (
        "https://node.example:8443",
        "alice",
        "notes",
    )
    assert parse_repo("http://node.example/alice/notes/") == ("http://node.example", "alice", "notes")
