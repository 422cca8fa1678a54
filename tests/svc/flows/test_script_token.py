"""Scripts: SVC_TOKEN on a machine that nobody ever signed in on."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.svc.api.hostile import hostile, http
from tests.svc.conftest import Svc

PASSWORD = "correct horse battery"


@pytest.fixture
def owner(node: str) -> httpx.Client:
    """A person in a browser, who makes tokens for scripts."""
    http = httpx.Client(base_url=node, trust_env=False, headers={"Origin": node})
    handle = f"ci-{secrets.token_hex(6)}"
    assert http.post("/auth/sign-up", data={"handle": handle, "password": PASSWORD}).status_code == 303
    http.headers["X-Handle"] = handle
    return http


@pytest.fixture
def machine(
    svc: Svc, node: str, owner: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], str]:
    """`machine("write")` stands on a fresh machine with such a token; answers the token's id."""
    monkeypatch.setenv("SVC_SERVER", node)

    def stand(access: str) -> str:
        folder = tmp_path / f"machine-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        made = owner.post("/api/v1/auth/tokens", json={"label": "ci", "access": access}).json()
        monkeypatch.setenv("SVC_HOME", str(folder / "home"))
        monkeypatch.setenv("SVC_TOKEN", made["token"])
        os.chdir(folder)
        return str(made["id"])

    return stand


def pushed(svc: Svc, repo: str) -> None:
    """A repository with one pushed file, in the folder `work`."""
    assert svc("repo", "create", "site").code == 0
    Path("work").mkdir()
    os.chdir("work")
    Path("a.txt").write_text("first\n")
    assert svc("repo", "init", "--repo", repo).code == 0
    answer = svc("push", "-m", "first")
    assert answer.code == 0, answer.err


def test_a_write_token_pushes_from_a_fresh_machine(
    svc: Svc, machine: Callable[[str], str], owner: httpx.Client
) -> None:
    repo = f"{owner.headers['X-Handle']}/site"
    machine("write")
    pushed(svc, repo)
    machine("write")
    assert svc("repo", "clone", repo).code == 0
    os.chdir("site")
    Path("a.txt").write_text("first\nsecond\n")
    answer = svc("push", "-m", "second")
    assert answer.code == 0, answer.err
    listed = svc("log", "--json", "message")
    assert [seal["message"] for seal in json.loads(listed.out)] == ["second", "first"]


def test_a_read_token_clones_and_pulls_and_does_not_push(
    svc: Svc, machine: Callable[[str], str], owner: httpx.Client
) -> None:
    repo = f"{owner.headers['X-Handle']}/site"
    machine("write")
    pushed(svc, repo)
    here, home, token = str(Path.cwd()), os.environ["SVC_HOME"], os.environ["SVC_TOKEN"]
    machine("read")
    cloned = svc("repo", "clone", repo)
    assert cloned.code == 0, cloned.err
    os.chdir("site")
    reader = str(Path.cwd()), os.environ["SVC_HOME"], os.environ["SVC_TOKEN"]
    enter(here, home, token)
    Path("a.txt").write_text("first\nsecond\n")
    assert svc("push", "-m", "second").code == 0
    enter(*reader)
    pulled = svc("pull")
    assert pulled.code == 0, pulled.err
    assert Path("a.txt").read_text() == "first\nsecond\n"
    Path("a.txt").write_text("mine\n")
    refused = svc("push", "-m", "mine")
    assert refused.code == 1
    assert "does not include 'write'" in refused.err
    assert Path("a.txt").read_text() == "mine\n"


def test_a_revoked_token_leaves_a_key_that_opens_nothing(
    svc: Svc, machine: Callable[[str], str], owner: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = owner.headers["X-Handle"]
    token = machine("write")
    pushed(svc, f"{handle}/site")
    assert owner.delete(f"/api/v1/auth/tokens/{token}").status_code == 204
    Path("a.txt").write_text("later\n")
    assert svc("push", "-m", "later").code == 4
    monkeypatch.delenv("SVC_TOKEN")
    refused = svc("login", "--device-key", "--handle", handle)
    assert refused.code == 1
    assert "script token" in refused.err


def enter(folder: str, home: str, token: str) -> None:
    os.chdir(folder)
    os.environ["SVC_HOME"], os.environ["SVC_TOKEN"] = home, token


@pytest.mark.parametrize("way", ["--server", "SVC_SERVER", "-R", "repo.json"])
def test_a_token_goes_to_its_own_server_only(
    svc: Svc,
    machine: Callable[[str], str],
    owner: httpx.Client,
    node: str,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    """Whatever names another server: that server hears nothing, and the person both addresses."""
    machine("write")
    words = ["repo", "list"]
    with hostile(http("200 OK", b'{"items": [], "next_cursor": null}')) as evil:
        if way == "--server":
            words += ["--server", evil.origin]
        elif way == "SVC_SERVER":
            monkeypatch.setenv("SVC_SERVER", evil.origin)
        elif way == "-R":
            words = ["repo", "view", "-R", f"{evil.origin.partition('//')[2]}/o/n"]
        else:
            monkeypatch.delenv("SVC_SERVER")
            pushed(svc, f"{node.partition('//')[2]}/{owner.headers['X-Handle']}/site")
            link = Path(".svc/repo.json")
            link.write_text(json.dumps({**json.loads(link.read_text()), "server": evil.origin}))
            words = ["status"]
        told = svc(*words)
        assert evil.requests == []
        if way == "repo.json":
            assert svc("push", "-m", "x").code == 4
            assert svc("pull").code == 4
            assert evil.requests == []
    assert (told.code, told.out) == (4, ""), told.err
    assert f"SVC_TOKEN is for {node} and this command uses" in told.err
    assert evil.origin in told.err


def test_without_another_word_a_token_names_the_server(
    svc: Svc, machine: Callable[[str], str], owner: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine("read")
    monkeypatch.delenv("SVC_SERVER")
    assert svc("repo", "list").code == 0
    assert owner.headers["X-Handle"] in svc("auth", "status").out


def test_a_token_of_the_first_form_is_sent_nowhere(
    svc: Svc, machine: Callable[[str], str], node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine("read")
    old = "svct_" + os.environ["SVC_TOKEN"].partition(".")[2]
    monkeypatch.setenv("SVC_TOKEN", old)
    told = svc("repo", "list")
    assert told.code == 4
    assert "settings?tab=tokens" in told.err
    assert old not in told.err
