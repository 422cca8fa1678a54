"""Small things that people met in a day of work with svc."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from localstore.core.model.limits import GIB, KIB, MIB, in_words
from svc.agent.invoke.picture import open_image, reason
from tests.patience import PATIENCE
from tests.svc.conftest import ROOT, Svc


@pytest.fixture
def repo(alice: Svc) -> str:
    name = f"{os.environ['TEST_HANDLE']}/app"
    assert alice("repo", "create", "app").code == 0
    assert alice("repo", "init", name).code == 0
    Path("a.txt").write_text("one\n")
    assert alice("push", "-m", "First").code == 0
    return name


def answered(answer: str, *words: str) -> tuple[int, str]:
    """The exit code and what is shown of a command at a terminal where somebody types `answer`."""
    near, far = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "svc", *words],
        stdin=far,
        stdout=far,
        stderr=far,
        env={**os.environ, "TERM": "xterm", "PYTHONPATH": str(ROOT)},
    ) as process:
        os.close(far)
        os.write(near, answer.encode())
        shown = b""
        try:
            while piece := os.read(near, 65536):
                shown += piece
        except OSError:
            pass
        code = process.wait(timeout=PATIENCE)
    os.close(near)
    return code, shown.decode()


def state(svc: Svc, repo: str) -> str:
    return str(json.loads(svc("repo", "view", repo, "--json", "state,full_name").out)["state"])


def test_archive_asks_and_rename_asks_on_a_terminal(alice: Svc, repo: str) -> None:
    told = alice("repo", "archive")
    assert told.code == 2
    assert "--yes" in told.err
    assert state(alice, repo) == "active"
    code, shown = answered("n\n", "repo", "archive")
    assert (code, "nothing was changed" in shown) == (130, True), shown
    assert state(alice, repo) == "active"
    code, shown = answered("n\n", "repo", "rename", "other")
    assert (code, f"Renaming {repo} to other" in shown) == (130, True), shown
    assert alice("repo", "view", f"{repo.partition('/')[0]}/other").code == 1
    code, shown = answered("y\n", "repo", "rename", "other")
    assert code == 0, shown
    assert alice("repo", "rename", "third").code == 0
    assert alice("repo", "archive", "--yes").code == 0


def test_web_opens_a_page_or_prints_its_address(alice: Svc, repo: str) -> None:
    assert alice("issue", "create", "-t", "It hangs", "-b", "").code == 0
    assert alice("repo", "branch", "side").code == 0
    assert alice("switch", "side").code == 0
    Path("a.txt").write_text("two\n")
    assert alice("push", "-m", "Second").code == 0
    assert alice("pr", "create", "-t", "Two", "-b", "").code == 0
    assert alice("repo", "visibility", "public", "--yes").code == 0
    for words, shown in (
        (("repo", "view"), repo),
        (("issue", "list"), "It hangs"),
        (("issue", "view", "1"), "It hangs"),
        (("pr", "list"), "Two"),
        (("pr", "view", "2"), "Two"),
    ):
        told = alice(*words, "--web")
        assert told.code == 0, told
        page = httpx.get(told.out.strip(), trust_env=False)
        assert (page.status_code, shown in page.text) == (200, True), (words, told)
    told = alice("issue", "view", "7", "--web")
    assert (told.code, told.out) == (1, "")
    told = alice("pr", "create", "--web")
    assert (told.code, told.out) == (2, "")
    assert "pages open no proposals in this version of svc" in told.err


def test_a_number_of_a_proposal_is_named_as_one(alice: Svc, repo: str) -> None:
    assert alice("repo", "branch", "side").code == 0
    assert alice("switch", "side").code == 0
    Path("a.txt").write_text("two\n")
    assert alice("push", "-m", "Second").code == 0
    assert alice("pr", "create", "-t", "Two", "-b", "").code == 0
    told = alice("issue", "view", "1")
    assert told.code == 1
    assert f"#1 of {repo} is a proposal; see: svc pr view 1" in told.err
    assert "has no issue #7; see: svc issue list" in alice("issue", "view", "7").err


def test_a_number_of_an_issue_is_named_as_one(alice: Svc, repo: str) -> None:
    assert alice("issue", "create", "-t", "Broken", "-b", "").code == 0
    for typed in (("pr", "view", "1"), ("pr", "close", "1"), ("pr", "label", "add", "1", "x")):
        told = alice(*typed)
        assert (told.code, told.out) == (1, "")
        assert f"#1 of {repo} is an issue; see: svc issue view 1" in told.err
    assert "has no proposal #7; see: svc pr list" in alice("pr", "view", "7").err


def test_the_owner_of_a_repository_is_not_invited_to_it(alice: Svc, repo: str) -> None:
    told = alice("repo", "collaborator", "add", repo.partition("/")[0])
    assert told.code == 1
    assert f"owns {repo} and may do everything there" in told.err
    assert "collaborator role" not in told.err


def test_a_run_is_recorded_on_a_branch(alice: Svc, repo: str) -> None:
    head = json.loads(alice("log", "--json", "id").out)[0]["id"]
    told = alice("repo", "run", "create", "ci/test", "--branch", "main", "-R", repo, "--json", "seal_id")
    assert json.loads(told.out) == {"seal_id": head}
    told = alice("repo", "run", "create", "ci/test", "--branch", "main", "--seal", head)
    assert (told.code, "use one of them" in told.err) == (2, True), told


def test_transfers_say_whether_an_organisation_is_meant(alice: Svc, repo: str) -> None:
    assert alice("org", "create", "a-day-of-work").code == 0
    assert alice("repo", "transfer", "a-day-of-work", "--org", "--yes").code == 0
    assert json.loads(alice("repo", "transfer-list", "--json").out)[0]["org"] is True


@pytest.mark.parametrize(
    ("count", "said"),
    [(128 * MIB, "128 MiB"), (64 * KIB, "64 KiB"), (2 * GIB, "2 GiB"), (1500, "1500 bytes"), (0, "0 bytes")],
)
def test_limits_are_said_in_units(count: int, said: str) -> None:
    assert in_words(count) == said


def test_an_asset_that_is_too_large_is_told_the_limit_in_units(alice: Svc, repo: str) -> None:
    assert alice("repo", "release", "create", "v1").code == 0
    with Path("big.bin").open("wb") as file:
        file.truncate(128 * MIB + 1)
    told = alice("repo", "release", "upload", "v1", "big.bin")
    assert (told.code, "at most 128 MiB" in told.err) == (2, True), told


@pytest.mark.parametrize("raw", [b"no image\n", b"", b"GIF89a" + b"\0" * 9, b"\x89PNG\r\n\x1a\n" + b"x" * 99])
def test_what_is_not_an_image_says_so_without_objects_of_the_decoder(raw: bytes) -> None:
    with pytest.raises(Exception) as caught:
        open_image(raw).load()
    said = reason(caught.value)
    assert "<" not in said and "0x" not in said
    assert "none of PNG" in said or "it is damaged (" in said or ":" in said
