"""Commands against the relay: exit codes, prompts, signs of what they did, and servers that lie."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from localstore.core.encoding import b64u
from localstore.core.errors import SvcError
from localstore.core.identity.keys import seal_to
from svc.cmd.frame.app import normalise
from svc.cmd.frame.command import build
from svc.cmd.frame.json_option import is_list_of, with_fields
from svc.http import silence, slow
from svc.http.session import Sessions
from tests.patience import PATIENCE
from tests.svc.api.hostile import hostile, http
from tests.svc.conftest import ROOT, Svc, clean_environment

KEY = "-oR" + "x" * 40  # an id that begins with a dash


def handle() -> str:
    return os.environ["TEST_HANDLE"]


@pytest.mark.parametrize(
    ("words", "read"),
    [
        (["help", "repo", "list"], ["repo", "list", "--help"]),
        (["auth", "device", "revoke", KEY, "--yes"], ["auth", "device", "revoke", f"={KEY}", "--yes"]),
        (["auth", "device", "revoke", "--yes", "--", KEY], ["auth", "device", "revoke", "--yes", "--", KEY]),
    ],
)
def test_words_are_read_as_people_mean_them(words: list[str], read: list[str]) -> None:
    assert normalise(words) == read


@pytest.mark.parametrize(
    ("words", "read"),
    [
        (["list", "--json"], ["list", "--json="]),
        (["list", "--json", "full_name,id"], ["list", "--json=full_name,id"]),
        (["list", "--json", "fullName"], ["list", "--json=fullName"]),
        (["view", "--json", "a/b"], ["view", "--json=", "a/b"]),
        (["view", "--json", "--jq", "."], ["view", "--json=", "--jq", "."]),
        (["view", "--jq", "--json", "--json", "id"], ["view", "--jq", "--json", "--json=id"]),
        (["create", "--json", "notes"], ["create", "--json=", "notes"]),
        (["create", "-d", "text", "--json", "notes"], ["create", "-d", "text", "--json=", "notes"]),
        (["create", "notes", "--json", "bogus"], ["create", "notes", "--json=bogus"]),
        (["create", "--json", "bogus", "notes"], ["create", "--json=bogus", "notes"]),
        (["create", "--json", "name"], ["create", "--json=name"]),
        (["branch", "--json", "parser"], ["branch", "--json=parser"]),
        (["view", "--", "--json"], ["view", "--", "--json"]),
        (["api", "-XPATCH", "--json", "repos"], ["api", "-XPATCH", "--json=", "repos"]),
    ],
)
def test_a_word_after_json_is_what_the_command_can_mean(words: list[str], read: list[str]) -> None:
    """FIELDS, or an argument that is missing still; never a guess that could do something."""
    command = build(f"repo {words[0]}")
    required = sum(param.param_type_name == "argument" and param.required for param in command.params)
    decide = partial(is_list_of, command.answers.fields, required)
    assert with_fields(words[1:], command.params, decide) == read[1:]


def test_json_may_stand_before_the_command(alice: Svc) -> None:
    assert alice("repo", "create", "front").code == 0
    for front in (["--json"], ["--json", "id"], ["--json=id"]):
        for words in ([*front, "repo", "list"], ["repo", *front, "list"]):
            told = alice(*words)
            assert told.code == 0, told
            assert ("id" in json.loads(told.out)[0]) == (front != ["--json"])


def test_a_field_in_the_spelling_of_gh_is_named_in_ours(alice: Svc) -> None:
    told = alice("repo", "list", "--json", "fullName")
    assert (told.code, told.out) == (2, "")
    assert "did you mean full_name?" in told.err


def test_a_failed_request_shows_its_own_error(alice: Svc) -> None:
    told = alice("repo", "api", "repos/nothing", "-q", ".full_name | length | error")
    assert told.code == 1
    assert json.loads(told.out)["status"] == 404
    assert "the server answered 404: " in told.err
    assert "jq" not in told.err
    told = alice("repo", "view", "nobody/nothing", "-q", ".a.b.c")
    assert "nobody/nothing" in told.err
    assert "jq" not in told.err


def test_a_program_that_only_its_input_proves_wrong_says_what_was_done(alice: Svc) -> None:
    told = alice("repo", "create", "made", "--jq", ".name | keys")
    assert (told.code, told.out) == (0, "")  # a script that saw it fail would make it again
    assert f"this was done: Created {handle()}/made" in told.err
    assert "--jq: " in told.err


def test_exit_codes(alice: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    assert alice("repo", "create", "a").code == 0
    assert alice("repo", "create", "a").code == 1
    assert alice("repo", "create").code == 2
    assert alice("repo", "delete", "-R", f"{handle()}/a").code == 2
    monkeypatch.setenv("SVC_HOME", "/nonexistent/home")
    told = alice("repo", "create", "b")
    assert told.code == 4
    assert "svc login" in told.err
    monkeypatch.setenv("SVC_TOKEN", "nonsense")
    assert alice("repo", "list").code == 4


def test_every_leaf_of_the_error_tree_has_an_exit_code_of_the_table() -> None:
    def leaves(kind: type[SvcError]) -> list[type[SvcError]]:
        return [kind, *(leaf for child in kind.__subclasses__() for leaf in leaves(child))]

    assert {leaf.exit for leaf in leaves(SvcError)} <= {1, 2, 4, 8, 130}


def test_every_list_and_change_speaks_json(alice: Svc) -> None:
    repo = f"{handle()}/j"
    for words in (
        ["repo", "create", "j"],
        ["repo", "view", repo],
        ["repo", "list"],
        ["repo", "search", "j"],
        ["repo", "edit", "-R", repo, "-d", "x"],
        ["repo", "visibility", "private", "-R", repo],
        ["repo", "archive", "-R", repo, "--yes"],
        ["repo", "unarchive", "-R", repo],
        ["repo", "branch", "-R", repo],
        ["repo", "tag", "list", "-R", repo],
        ["repo", "device", "status"],
        ["repo", "rename", "k", "-R", repo],
        ["log", "-R", repo],
        ["auth", "status"],
        ["auth", "token", "list"],
        ["auth", "device", "list"],
        ["auth", "device", "add"],
        ["version"],
        ["repo", "delete", "-R", repo, "--yes"],
        ["logout"],
    ):
        told = alice(*words, "--json")
        assert told.code == 0, told
        json.loads(told.out)


def test_a_context_comes_from_flag_environment_link_and_git_in_this_order(
    alice: Svc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("flag", "env", "link", "git"):
        assert alice("repo", "create", name).code == 0
    seen = ["repo", "view", "--jq", ".name"]
    assert alice(*seen).code == 2
    (tmp_path / "work" / ".git").mkdir()
    (tmp_path / "work" / ".git" / "config").write_text(f'[remote "o"]\n\turl = svc://{handle()}/git\n')
    assert alice(*seen).out == "git\n"
    assert alice("repo", "init", f"{handle()}/link").code == 0
    assert alice(*seen).out == "link\n"
    monkeypatch.setenv("SVC_REPO", f"{handle()}/env")
    assert alice(*seen).out == "env\n"
    assert alice(*seen, "-R", f"{handle()}/flag").out == "flag\n"
    assert alice("-R", f"{handle()}/flag", *seen).out == "flag\n"


def test_api_refuses_what_it_must(alice: Svc) -> None:
    for words in (
        ["repo", "api", "repos", "-d", "{}", "-f", "a=b"],
        ["repo", "api", "repos", "-f", "novalue"],
        ["repo", "api", "repos", "-H", "Authorization: x"],
        ["repo", "api", "repos", "-H", "broken"],
        ["repo", "api", "repos", "-X", "G E T"],
        ["repo", "api", "repos", "--paginate", "-X", "POST"],
        ["repo", "api", "https://evil.example/x"],
    ):
        told = alice(*words)
        assert told.code == 2, told
        assert told.out == ""
    assert alice("repo", "api", "nothing").code == 1
    made = alice(
        "repo", "api", "repos", "-f", "name=made", "-F", "description=5 apples", "--jq", ".description"
    )
    assert (made.code, made.out) == (0, "5 apples\n")
    assert (
        alice("repo", "api", "repos", "-X", "GET", "-f", "owner=@me", "--jq", ".items | length").out == "1\n"
    )


def test_a_login_at_a_server_that_claims_another_address_signs_nothing(svc: Svc, tmp_path: Path) -> None:
    """A server could pass on the challenge of another node; the answer would sign it in there."""
    x25519 = Sessions(tmp_path / "home").identity.transport.public
    challenge = {
        "v": 1,
        "challenge_id": b64u(b"1" * 16),
        "sealed_challenge": b64u(seal_to(x25519, b"2" * 32)),
        "origin": "https://bank.example",
        "expires_in": 300,
        "account": "a",
    }
    with hostile(http("201 Made", json.dumps(challenge).encode())) as server:
        told = svc("login", "--device-key", "--handle", "mallory", "--server", server.origin)
        assert told.code == 1
        assert "bank.example" in told.err
        assert len(server.requests) == 1


def test_a_login_in_the_browser_goes_to_the_server_that_was_asked(svc: Svc) -> None:
    code = {
        "device_code": "x",
        "user_code": "\x1b[2JBCDF",
        "verification_uri": "https://evil.example/cli/authorize",
        "verification_uri_complete": "https://evil.example/cli/authorize?c",
        "expires_in": 600,
        "interval": 5,
    }
    with hostile(http("200 OK", json.dumps(code).encode())) as server:
        told = svc("login", "--server", server.origin)
    assert told.code == 1
    assert "another address" in told.err
    assert "\x1b" not in told.err


@pytest.mark.parametrize(
    "words", [["repo", "view", "a/b"], ["repo", "list", "a"], ["repo", "api", "x"], ["version"]]
)
def test_a_server_that_answers_nonsense_is_one_line(svc: Svc, words: list[str]) -> None:
    with hostile(http("200 OK", b"\x1b[2J<html>", "text/html")) as server:
        told = svc(*words, "--server", server.origin)
    assert "\x1b" not in told.err
    assert "Traceback" not in told.err
    assert told.code == (0 if words[0] == "version" or words[1] == "api" else 1)


@pytest.mark.parametrize("media", ["text/html", "application/octet-stream", "application/json"])
def test_what_a_server_says_through_api_is_not_obeyed_by_a_terminal(tmp_path: Path, media: str) -> None:
    """On a terminal control, ANSI and bidirectional characters are shown as what they are; a pipe gets the
    bytes."""
    evil = "a\x1b]0;owned\x07b\x1b[2Jc\u202ed\x9be\u200bf\rg"
    body = json.dumps(evil).encode() if media.endswith("json") else evil.encode() + b"\xff\x9b2J"
    command = [sys.executable, "-m", "svc", "repo", "api", "/x", "--server"]
    environment = clean_environment(SVC_HOME=str(tmp_path), PAGER="cat", TERM="xterm")
    with hostile(http("200 OK", body, media)) as server:
        piped = subprocess.run(
            [*command, server.origin], capture_output=True, env=environment, cwd=ROOT, check=True
        ).stdout
        seen, _ = on_a_terminal([*command, server.origin], environment)
    if not media.endswith("json"):
        assert piped == body
    shown = seen.decode("utf-8")
    assert not {char for char in shown if not char.isprintable()} - {"\r", "\n"}, shown
    assert shown.count("\r") == shown.count("\r\n"), "the terminal's own ends of lines alone"
    for sign in ("u001b", "u202e") if media.endswith("json") else ("\\x1b", "\\u202e", "\\x9b", "\\xff"):
        assert sign in shown, shown


def on_a_terminal(command: list[str], environment: dict[str, str], typed: bytes = b"") -> tuple[bytes, int]:
    """What the command writes to a terminal, and its exit code. `typed`: what is typed there."""
    process, near = pty.fork()
    if process == 0:
        os.chdir(ROOT)
        os.execvpe(command[0], command, environment)
    seen = b""
    os.write(near, typed)
    with contextlib.suppress(OSError):  # the terminal ends with its process
        while part := os.read(near, 65536):
            seen += part
    os.close(near)
    return seen, os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def test_wrong_options_of_login(svc: Svc) -> None:
    server = ["--server", "http://127.0.0.1:9"]
    assert svc("login").code == 2
    assert svc("login", *server, "--handle", "x").code == 2
    assert svc("login", *server, "--device-key").code == 2
    assert svc("login", *server, "--device-key", "--handle", "not a name").code == 2
    assert svc("login", *server, "--device-key", "--handle", "x", "--pair", "vowels").code == 2


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    told = subprocess.run(
        [
            "bash",
            "-c",
            f"'{sys.executable}' -m svc completions bash | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}",
        ],
        capture_output=True,
        text=True,
        env=clean_environment(SVC_HOME=str(tmp_path)),
        cwd=ROOT,
    )
    assert told.stdout == "0\n"
    assert told.stderr == ""


def test_control_c_ends_with_130(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = subprocess.Popen(
            [sys.executable, "-m", "svc", "repo", "list", "a", "--server", address],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=clean_environment(SVC_HOME=str(tmp_path)),
            cwd=ROOT,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's & has it ignored
        )
        connection, _ = silent.accept()  # the command now waits for an answer that never comes
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        connection.close()
    assert process.returncode == 130
    assert out == ""
    assert err == "svc: interrupted\n"


def test_an_archived_repository_takes_no_push(alice: Svc) -> None:
    handle = os.environ["TEST_HANDLE"]
    assert alice("repo", "create", "shut").code == 0
    assert alice("repo", "init", "--repo", f"{handle}/shut").code == 0
    Path("a.txt").write_text("a\n")
    assert alice("repo", "archive", "--yes").code == 0
    refused = alice("push", "-m", "one")
    assert refused.code == 1
    assert "archived" in refused.err
    assert alice("log", "--json", "id").out.strip() == "[]"
    assert alice("repo", "unarchive").code == 0
    assert alice("push", "-m", "one").code == 0


def test_a_server_that_does_not_answer_is_said_to_be_waited_for(
    alice: Svc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow, "SLOW", 0.05)
    monkeypatch.setattr(silence, "SILENT_SECONDS", 1.5)  # the thread that says it may come late
    monkeypatch.setattr(silence, "ASKING_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        origin = f"http://127.0.0.1:{silent.getsockname()[1]}"
        told = alice("repo", "view", "a/b", "--server", origin)
    assert told.code == 1
    assert told.err.count(f"svc: {origin} has not answered for 0.05 s; still waiting") == 1
    assert "did not answer, nor did it on another connection" in told.err
