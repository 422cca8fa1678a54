"""A branch that is deleted, or deleted and made again, while a folder stands on it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.seal_ids import shortest_id
from tests.svc.conftest import Svc


@pytest.fixture
def folder(alice: Svc, tmp_path: Path) -> Path:
    """A folder on the branch `side`, one seal ahead of `main`, with a file that only `side` has."""
    repo = f"{os.environ['TEST_HANDLE']}/app"
    assert alice("repo", "create", "app").code == 0
    assert alice("repo", "init", repo).code == 0
    here = tmp_path / "work"
    (here / "a.txt").write_text("one\n")
    assert alice("push", "-m", "One").code == 0
    assert alice("repo", "branch", "side").code == 0
    assert alice("switch", "side").code == 0
    (here / "s.txt").write_text("side\n")
    assert alice("push", "-m", "Side").code == 0
    return here


def last_seal(here: Path) -> str:
    return str(json.loads((here / ".svc" / "state.json").read_text())["last_seal"])


def test_every_command_says_that_the_branch_is_gone_and_how_to_go_on(alice: Svc, folder: Path) -> None:
    assert alice("repo", "branch-delete", "side", "--yes").code == 0
    (folder / "a.txt").write_text("edited\n")
    told = alice("status")
    assert told.code == 0, told
    assert "branch side was deleted" in told.err
    assert "svc switch main" in told.err
    assert "changed\ta.txt" in told.out
    found = json.loads(alice("status", "--json", "branch_state,changed").out)
    assert found == {"branch_state": "gone", "changed": ["a.txt"]}
    for words in (["push", "-m", "x"], ["pull"], ["pull", "--merge"], ["pull", "--dry-run"]):
        told = alice(*words)
        assert told.code == 1, words
        assert "branch side was deleted" in told.err
        assert "svc switch main" in told.err
        assert f"svc repo branch side --from {last_seal(folder)[:12]}" in told.err
    assert (folder / "a.txt").read_text() == "edited\n"
    told = alice("log", "--jq", ".[].message")
    assert told.out == "Side\nOne\n", "the seals of the folder stay readable"


def test_the_ways_out_work_and_keep_the_edits(alice: Svc, folder: Path) -> None:
    assert alice("repo", "branch-delete", "side", "--yes").code == 0
    (folder / "a.txt").write_text("edited\n")
    (folder / "new.txt").write_text("new\n")
    told = alice("switch", "main")
    assert told.code == 0, told
    assert (folder / "a.txt").read_text() == "edited\n"
    assert (folder / "new.txt").read_text() == "new\n"
    assert not (folder / "s.txt").exists(), "what the seal of the old branch had is not an edit"
    assert alice("status").out == "changed\ta.txt\t\nnew\tnew.txt\t\n"
    assert alice("push", "-m", "Two").code == 0


def test_edits_that_lived_only_on_the_deleted_branch_are_edits_of_the_folder(
    alice: Svc, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sent live and dropped with the branch: the folder still has them, and says so."""
    from localstore.folder.link import read_repo
    from localstore.home import Home
    from localstore.sync.compose import compose
    from localstore.sync.owning import open_copy
    from localstore.sync.transfer.send import send
    from svc.api import connect
    from svc.api.sync_transport import BranchTransport
    from svc.flows.common import begin
    from svc.http.session import Sessions

    (folder / "a.txt").write_text("live\n")
    (folder / "fresh.txt").write_text("live\n")
    home = Home.default(os.environ)
    sessions, link = Sessions(home.root), read_repo(folder)
    transport = BranchTransport(connect(link.server, sessions), link.repo_id, "side")
    with open_copy(folder, home, transport, sessions.identity.device) as device:
        begin(device)
        compose(device, device.scan())
        assert send(device).accepted == ["a.txt", "fresh.txt"]
    assert alice("repo", "branch-delete", "side", "--yes").code == 1
    assert alice("repo", "branch-delete", "side", "--yes", "--discard-live").code == 0
    told = alice("switch", "main")
    assert told.code == 0, told
    assert (folder / "a.txt").read_text() == "live\n"
    assert (folder / "fresh.txt").read_text() == "live\n"
    assert alice("status").out == "changed\ta.txt\t\nnew\tfresh.txt\t\n"


def test_a_gone_branch_can_be_made_again_from_the_folders_last_seal(alice: Svc, folder: Path) -> None:
    assert alice("repo", "branch-delete", "side", "--yes").code == 0
    (folder / "a.txt").write_text("edited\n")
    assert alice("repo", "branch", "side", "--from", last_seal(folder)[:12]).code == 0
    told = alice("status")
    assert "another branch" in told.err
    assert "svc pull --merge" in told.err
    assert json.loads(alice("status", "--json", "branch_state").out) == {"branch_state": "replaced"}
    told = alice("push", "-m", "x")
    assert told.code == 1
    assert "another branch" in told.err
    told = alice("pull")
    assert told.code == 1, "edits are in the way"
    assert "svc pull --merge" in told.err
    told = alice("pull", "--merge")
    assert told.code == 0, told
    assert "made again" in told.err
    assert (folder / "a.txt").read_text() == "edited\n"
    assert alice("status").out == "changed\ta.txt\t\n"
    assert alice("push", "-m", "Two").code == 0


def test_a_branch_made_again_elsewhere_takes_the_folder_along(alice: Svc, folder: Path) -> None:
    assert alice("repo", "branch-delete", "side", "--yes").code == 0
    assert alice("repo", "branch", "side", "--from", "main").code == 0
    told = alice("pull")
    assert told.code == 0, told
    assert "made again" in told.err
    assert not (folder / "s.txt").exists()
    assert alice("status").out == ""


def test_a_new_branch_without_a_base_starts_at_the_last_seal_when_the_branch_is_gone(
    alice: Svc, folder: Path
) -> None:
    assert alice("repo", "branch-delete", "side", "--yes").code == 0
    told = alice("repo", "branch", "again", "--json", "head")
    assert json.loads(told.out) == {"head": last_seal(folder)}


def test_deleting_the_branch_one_stands_on_asks(alice: Svc, folder: Path) -> None:
    told = alice("repo", "branch-delete", "side")
    assert told.code == 2
    assert "this folder is on side" in told.err.lower()
    assert "--yes" in told.err
    assert alice("repo", "branch", "--jq", ".[].name").out == "main\nside\n"
    assert alice("switch", "main").code == 0
    assert alice("repo", "branch-delete", "side").code == 2
    assert alice("repo", "branch-delete", "side", "--yes").code == 0


def test_a_branch_whose_seals_nothing_else_holds_is_deleted_after_a_yes_and_comes_back(
    alice: Svc, folder: Path
) -> None:
    seal = last_seal(folder)
    seals = json.loads(alice("log", "--jq", "[.[].id]").out)
    assert alice("switch", "main").code == 0
    told = alice("repo", "branch-delete", "side")
    assert (told.code, f"svc repo branch side --from {seal} makes it again" in told.err) == (2, True)
    assert "which leaves 1 seal on no branch or tag" in told.err
    assert alice("repo", "branch", "other", "--from", "side").code == 0
    assert alice("repo", "branch-delete", "other").code == 0, "side leads there too"
    assert alice("repo", "tag", "create", "kept", "--from", "side").code == 0
    assert alice("repo", "branch", "third", "--from", "side").code == 0
    assert alice("repo", "branch-delete", "side").code == 0
    assert alice("repo", "branch-delete", "third").code == 0, "a tag leads there"
    assert alice("repo", "branch", "side", "--from", "kept").code == 0
    assert alice("repo", "tag", "delete", "kept").code == 0
    told = alice("repo", "branch-delete", "side", "--yes")
    assert (told.code, f"svc repo branch side --from {seal} makes it again" in told.err) == (0, True)
    for typed in (seal, seal[:12], shortest_id(seal, seals)):
        assert alice("show", typed, "--json", "id").code == 0, typed
    assert alice("repo", "branch", "side", "--from", seal[:8]).code == 0
    assert alice("repo", "branch", "--jq", '.[] | select(.name == "side") | .head').out == f"{seal}\n"


def test_a_tag_that_alone_leads_to_seals_is_deleted_after_a_yes_and_comes_back(
    alice: Svc, folder: Path
) -> None:
    seal = last_seal(folder)
    assert alice("switch", "main").code == 0
    assert alice("repo", "tag", "create", "kept", "--from", "side").code == 0
    assert alice("repo", "branch-delete", "side").code == 0, "a tag leads there"
    told = alice("repo", "tag", "delete", "kept")
    way_back = f"svc repo tag create kept --from {seal} makes it again"
    assert (told.code, f"leaves 1 seal on no branch or tag ({way_back})" in told.err) == (2, True)
    assert way_back in alice("repo", "tag", "delete", "kept", "--yes").err
    assert alice(*way_back.partition(" makes")[0].split()[1:]).code == 0


def test_what_was_printed_is_found_by_its_beginning_after_the_branch_went(alice: Svc, folder: Path) -> None:
    seal, known = last_seal(folder), Path(os.environ["SVC_HOME"]) / "seals"
    assert alice("switch", "main").code == 0
    shutil.rmtree(known)
    assert alice("log", "side", "--oneline").out.startswith(seal[:12])
    repo_id = json.loads((folder / ".svc/repo.json").read_text())["repo_id"]
    gone = alice("repo", "api", "-X", "DELETE", f"/api/v1/repos/{repo_id}/refs/branch/side")
    assert gone.code == 0, gone.err
    assert alice("show", seal[:6], "--json", "id").code == 0
    for file in known.iterdir():
        file.write_bytes(b"\xff\n" + b"x" * 100)
    assert alice("show", seal[:6]).code == 1, "a damaged file is none"


def test_a_force_switch_off_a_gone_branch_moves_the_edits_to_the_trash(alice: Svc, folder: Path) -> None:
    assert alice("repo", "branch-delete", "side", "--yes").code == 0
    (folder / "a.txt").write_text("edited\n")
    told = alice("switch", "main", "--force")
    assert told.code == 0, told
    assert "your edited files are in" in told.err
    assert (folder / "a.txt").read_text() == "one\n"


def test_a_refused_switch_off_a_gone_branch_changes_nothing(alice: Svc, folder: Path) -> None:
    assert alice("repo", "branch-delete", "side", "--yes").code == 0
    (folder / "s.txt").write_text("edited\n")
    told = alice("switch", "main")
    assert told.code == 1
    assert "edits in s.txt;" in told.err
    assert json.loads(alice("status", "--json", "branch_state,changed,new").out) == {
        "branch_state": "gone",
        "changed": ["s.txt"],
        "new": [],
    }
    told = alice("switch", "main", "--merge")
    assert told.code == 0, told
    assert (folder / "s.txt").read_text() == "edited\n", "main never had it: it is a new file there"


def test_somebody_who_may_only_read_is_told_the_same(
    alice: Svc, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = f"{os.environ['TEST_HANDLE']}/app"
    assert alice("repo", "visibility", "public", "--yes").code == 0
    own = os.environ["SVC_HOME"]
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "reader"))
    assert alice("repo", "clone", repo, str(tmp_path / "copy"), "-b", "side").code == 0
    monkeypatch.setenv("SVC_HOME", own)
    assert alice("repo", "branch-delete", "side", "--yes").code == 0
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "reader"))
    monkeypatch.chdir(tmp_path / "copy")
    assert "branch side was deleted" in alice("status").err
    assert "branch side was deleted" in alice("pull").err
    monkeypatch.setenv("SVC_HOME", own)
    monkeypatch.chdir(folder)
    assert alice("repo", "branch", "side", "--from", "main").code == 0
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "reader"))
    monkeypatch.chdir(tmp_path / "copy")
    assert "another branch" in alice("status").err
    told = alice("pull")
    assert told.code == 0, told
    assert "made again" in told.err
    assert not (tmp_path / "copy" / "s.txt").exists()
    assert alice("status").err.count("\n") == 1
