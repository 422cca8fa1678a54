"""Which repository and server a command is about: used, or refused by name; never ignored."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.svc.cmd.test_refused_first import asked
from tests.svc.conftest import Svc

ELSEWHERE = "http://127.0.0.1:9"  # the discard port: nothing answers there
OF_THE_FOLDER = [
    ["status"],
    ["status", "--offline"],
    ["push", "-m", "x"],
    ["pull"],
    ["diff"],
    ["switch", "main"],
    ["restore", "a.txt"],
    ["watcher", "start"],
    ["watcher", "stop"],
]
OF_THE_REPOSITORY = [
    ["repo", "view"],
    ["repo", "delete", "--yes"],
    ["repo", "archive", "--yes"],
    ["repo", "branch", "x"],
    ["repo", "tag", "list"],
    ["log"],
    ["blame", "a.txt"],
    ["grep", "one"],
    ["diff", "--base", "main", "--head", "main"],
    ["repo", "api", "repos/{id}"],
]


def me() -> str:
    return os.environ["TEST_HANDLE"]


@pytest.fixture
def linked(alice: Svc) -> Svc:
    for name in ("app", "other"):
        assert alice("repo", "create", name).code == 0
    assert alice("repo", "init", f"{me()}/app").code == 0
    Path("a.txt").write_text("one\n")
    assert alice("push", "-m", "First").code == 0
    Path("a.txt").write_text("two\n")
    return alice


def test_another_server_is_refused(linked: Svc, node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = asked(node)
    for words in (*OF_THE_FOLDER, *OF_THE_REPOSITORY):
        told = linked(*words, "--server", ELSEWHERE)
        assert (told.code, told.out) == (2, ""), (words, told)
        assert f"--server says {ELSEWHERE}" in told.err
        assert node in told.err
    monkeypatch.setenv("SVC_SERVER", ELSEWHERE)
    for words in (*OF_THE_FOLDER, *OF_THE_REPOSITORY):
        told = linked(*words)
        assert (told.code, told.out) == (2, ""), (words, told)
        assert f"SVC_SERVER says {ELSEWHERE}" in told.err
    assert asked(node) == before
    assert Path("a.txt").read_text() == "two\n"


def test_the_folders_own_server_may_be_named(linked: Svc, node: str) -> None:
    for named in (node, node.replace("127.0.0.1", "localhost"), node.removeprefix("http://")):
        assert linked("status", "--server", named).code == 0
        assert linked("diff", "--server", named).code == 0


def test_another_repository_is_used_or_refused(linked: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    assert linked("repo", "view", "-R", f"{me()}/other", "-q", ".name").out == "other\n"
    for words in OF_THE_FOLDER:
        told = linked(*words, "-R", f"{me()}/other")
        assert (told.code, told.out) == (2, ""), (words, told)
        assert f"-R names {me()}/other" in told.err
        assert f"{me()}/app" in told.err
    assert linked("status", "-R", f"{me()}/app").code == 0
    monkeypatch.setenv("SVC_REPO", f"{me()}/other")
    for words in OF_THE_FOLDER:
        told = linked(*words)
        assert told.code == 2, (words, told)
        assert f"SVC_REPO names {me()}/other" in told.err


def test_a_folder_of_a_stranger_names_no_server_for_a_program_or_a_sign_in(
    linked: Svc, node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SVC_SERVER")
    link = Path(".svc/repo.json")
    link.write_text(link.read_text().replace(node, ELSEWHERE))
    checked = linked("upgrade", "--check")
    assert (checked.code, f"{node} hands out no builds" in checked.err) == (1, True), checked
    chosen = linked("upgrade", "--check", "--server", ELSEWHERE)
    assert (chosen.code, ELSEWHERE in chosen.err) == (1, True), chosen
    for words in ((), ("--device-key", "--handle", me()), ("--new-key", "--yes")):
        told = linked("login", *words)
        assert (told.code, told.out) == (2, ""), told
        assert f"svc login --server {ELSEWHERE}" in told.err
    link.write_text(link.read_text().replace(ELSEWHERE, node))
    assert linked("logout").code == 0
    assert linked("login", "--device-key", "--handle", me()).code == 0  # its own server is known here


def test_a_push_in_a_pipe_answers_with_a_seal_and_nothing_else(linked: Svc) -> None:
    """`seal=$(svc push -m "Report")` was a sentence where nothing was to be sealed."""
    sealed = linked("push", "-m", "Second")
    again = linked("push", "-m", "Third")
    assert (again.code, again.out) == (0, sealed.out), again
    assert "Nothing to seal" in again.err
    assert json.loads(linked("push", "-m", "Third", "--json", "seal").out) == {"seal": None}
    pulled = linked("pull")
    assert (pulled.code, pulled.out) == (0, sealed.out), pulled


def test_a_renamed_repository_is_known_by_both_names(linked: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    assert linked("repo", "rename", f"{me()}/app", "newer").code == 0
    Path(".svc/repo.json").write_text(Path(".svc/repo.json").read_text().replace("/newer", "/app"))
    for words in OF_THE_FOLDER:
        if "watcher" in words:
            continue
        for name in ("newer", "app"):
            told = linked(*words, "-R", f"{me()}/{name}")
            assert "names" not in told.err, (words, told)
            assert told.code == 0 or words == ["pull"], (words, told)
    monkeypatch.setenv("SVC_REPO", f"{me()}/newer")
    assert linked("status").code == 0
    assert linked("pull").code == 0
    assert linked("status", "-R", f"{me()}/nothing").code == 2


def test_a_repository_of_one_server_is_not_asked_of_another(alice: Svc, node: str) -> None:
    told = alice("repo", "view", "-R", f"node.example/{me()}/app", "--server", node)
    assert (told.code, told.out) == (2, "")
    assert "node.example" in told.err
    assert node in told.err


def test_a_repository_is_named_by_position_or_by_flag(alice: Svc) -> None:
    for name in ("one", "two"):
        assert alice("repo", "create", name).code == 0
    one, two = f"{me()}/one", f"{me()}/two"

    def seen(*words: str) -> dict[str, object]:
        told = alice("repo", *words, "--json", "full_name,state,visibility,description")
        assert told.code == 0, told
        return dict(json.loads(told.out))

    assert seen("view", one)["full_name"] == one
    assert seen("archive", one, "--yes")["state"] == "archived"
    assert seen("unarchive", one)["state"] == "active"
    assert seen("edit", one, "-d", "First")["description"] == "First"
    assert seen("visibility", one, "public", "--yes")["visibility"] == "public"
    assert seen("visibility", "private", one)["visibility"] == "private"
    assert seen("visibility", "private", "-R", one)["visibility"] == "private"
    assert seen("rename", one, "first")["full_name"] == f"{me()}/first"
    assert seen("rename", "uno", "-R", f"{me()}/first")["full_name"] == f"{me()}/uno"
    for words in (["view", one, "-R", two], ["delete", two, "-R", one, "--yes"], ["rename", "a", "b"]):
        told = alice("repo", *words)
        assert (told.code, told.out) == (2, ""), told
    told = alice("repo", "delete", two, "--yes", "--json", "full_name,restore_id")
    assert json.loads(told.out)["full_name"] == two
    assert alice("repo", "view", two).code == 1


def test_repositories_of_an_owner(alice: Svc) -> None:
    assert alice("repo", "create", "one").code == 0
    mine = alice("repo", "list", me(), "-q", ".[].full_name")
    assert mine.out == alice("repo", "list", "--owner", me(), "-q", ".[].full_name").out == f"{me()}/one\n"
    assert alice("repo", "list", "@me", "-q", "length").out == "1\n"
    told = alice("repo", "list", me(), "--owner", "somebody")
    assert (told.code, told.out) == (2, "")


def test_create_and_clone(alice: Svc) -> None:
    Path("taken").mkdir()
    Path("taken/file").write_text("mine\n")
    told = alice("repo", "create", "taken", "--clone")
    assert (told.code, told.out) == (1, "")
    assert "taken" in told.err
    assert alice("repo", "view", f"{me()}/taken").code == 1, "nothing was created"
    told = alice("repo", "create", "notes", "--clone", "--json", "full_name,folder")
    assert told.code == 0, told
    assert json.loads(told.out) == {"full_name": f"{me()}/notes", "folder": str(Path("notes").resolve())}
    os.chdir("notes")
    Path("a.txt").write_text("a\n")
    assert alice("push", "-m", "First").code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("repo", "list"),
        ("repo", "list", "@me"),
        ("repo", "list", "--deleted"),
        ("issue", "status", "-R", "OWNER/one"),
        ("issue", "list", "--assignee", "@me", "-R", "OWNER/one"),
        ("pr", "status", "-R", "OWNER/one"),
        ("pr", "list", "--author", "@me", "-R", "OWNER/one"),
        ("inbox",),
        ("auth", "token", "list"),
        ("auth", "device", "list"),
    ],
)
def test_what_is_mine_needs_a_session(alice: Svc, words: tuple[str, ...]) -> None:
    assert alice("repo", "create", "one", "--public").code == 0
    assert alice("logout").code == 0
    told = alice(*(word.replace("OWNER", me()) for word in words))
    assert (told.code, told.out) == (4, ""), told
    assert "svc login" in told.err


def test_what_is_public_needs_no_session(alice: Svc) -> None:
    assert alice("repo", "create", "one", "--public").code == 0
    assert alice("logout").code == 0
    assert alice("repo", "list", me(), "-q", ".[].full_name").out == f"{me()}/one\n"
    assert alice("repo", "list", "--owner", "nobody-at-all", "-q", "length").out == "0\n"
