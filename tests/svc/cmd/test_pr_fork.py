"""Proposals in the folder of a fork are those of its parent, unless -R names another repository."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from svc.cmd.frame import complete
from tests.svc.cmd.test_pr import linked, opened, pushed
from tests.svc.conftest import Answer, Svc

__all__ = ["linked"]


@pytest.fixture
def forked(linked: Svc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Svc, str, str]:
    """Bob in the folder of his fork, whose main has one seal more than the parent's; the names of both."""
    parent = f"{os.environ['TEST_HANDLE']}/app"
    bob = f"{os.environ['TEST_HANDLE'][:30]}-bob"
    assert linked("repo", "visibility", "public", "--yes").code == 0
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    assert linked("login", "--device-key", "--handle", bob).code == 0
    monkeypatch.chdir(tmp_path)
    assert linked("repo", "fork", parent, "--clone").code == 0
    monkeypatch.chdir(tmp_path / "app")
    pushed(linked, "one\nthree\n", "Three")
    return linked, parent, f"{bob}/app"


def told_person(monkeypatch: pytest.MonkeyPatch, svc: Svc, *words: str) -> Answer:
    """The same with notes that a person reads."""
    with monkeypatch.context() as patch:
        patch.setattr(sys.stderr.__class__, "isatty", lambda _: True, raising=False)
        return svc(*words)


def test_commands_go_to_the_parent(forked: tuple[Svc, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    svc, parent, fork = forked
    made = svc("pr", "create", "--fill")
    assert (made.code, made.out.strip()) == (0, "1"), made
    for which in ((), ("1",), ("main",), (f"{fork}:main",), (f"{fork.partition('/')[0]}:main",)):
        told = svc("pr", "view", *which, "--json", "title,head_repo")
        assert told.code == 0, (which, told)
        assert json.loads(told.out)["head_repo"]["full_name"] == fork
        assert told.err == ""
    assert json.loads(svc("pr", "list", "--json", "number").out) == [{"number": 1}]
    assert json.loads(svc("pr", "status", "--json", "number,why").out) == [
        {"number": 1, "why": ["branch", "author"]}
    ]
    for words in (("checks",), ("versions",), ("threads",), ("diff",)):
        assert svc("pr", *words).code == 0, words
    assert svc("pr", "comment", "-b", "Here").code == 0
    assert svc("pr", "react", "1", "+1").code == 0
    assert svc("pr", "edit", "1", "-t", "Three of them").code == 0
    review = svc("pr", "review", "1", "--comment", "-b", "Look")
    assert review.code == 0, review
    seen = json.loads(svc("pr", "view", "-R", parent, "1", "--comments", "--json", "title,thread").out)
    assert (seen["title"], len(seen["thread"])) == ("Three of them", 2)
    person = told_person(monkeypatch, svc, "pr", "view")
    assert person.err == f"proposals of {parent}; for proposals of this folder's fork: -R {fork}\n"


def test_r_names_the_fork_itself(forked: tuple[Svc, str, str]) -> None:
    svc, _, fork = forked
    assert json.loads(svc("pr", "list", "-R", fork, "--json", "number").out) == []
    missing = svc("pr", "view", "1", "-R", fork)
    assert (missing.code, f"{fork} has no proposal #1" in missing.err) == (1, True)


def test_what_the_parent_lacks_names_the_way_to_the_fork(forked: tuple[Svc, str, str]) -> None:
    svc, parent, fork = forked
    for words in (("view",), ("view", "7"), ("checks",)):
        told = svc("pr", *words)
        assert told.code == 1, words
        assert parent in told.err and f"for proposals of this folder's fork: -R {fork}" in told.err, told


def test_a_number_that_both_have_open_is_the_parents_and_a_note_says_so(forked: tuple[Svc, str, str]) -> None:
    svc, parent, fork = forked
    assert svc("repo", "branch", "topic2").code == 0
    assert svc("switch", "topic2").code == 0
    pushed(svc, "one\nfour\n", "Four")
    own = svc("pr", "create", "--head", "topic2", "-t", "Mine", "-R", fork)
    assert (own.code, own.out.strip()) == (0, "1"), own
    assert f"svc pr view 1 -R {fork}" in own.err
    opened(svc, "-t", "Theirs")
    both = svc("pr", "close", "1")
    assert both.code == 0, both
    assert f"#1 of {parent}; this folder's fork has an open #1 too: -R {fork}" in both.err
    assert json.loads(svc("pr", "view", "1", "-R", parent, "--json", "state").out)["state"] == "closed"
    assert json.loads(svc("pr", "view", "1", "-R", fork, "--json", "state").out)["state"] == "open"
    again = svc("pr", "view", "1", "--json", "state")
    assert json.loads(again.out)["state"] == "closed"
    assert again.err == "", "only what is open in both can be mistaken"


def test_a_branch_of_the_same_name_is_not_taken_for_the_forks(
    forked: tuple[Svc, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    svc, parent, _ = forked
    assert svc("repo", "branch", "topic").code in (0, 1)
    assert svc("switch", "topic", "--merge").code == 0
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "home"))
    assert svc("pr", "create", "--head", "topic", "-t", "Alice's", "-R", parent).code == 0
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    mine = svc("pr", "view")
    assert (mine.code, "no proposal of" in mine.err) == (1, True), mine
    assert json.loads(svc("pr", "view", "topic", "--json", "title").out) == {"title": "Alice's"}


def test_checkout_switches_to_the_forks_branch_and_to_no_other(
    forked: tuple[Svc, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    svc, parent, _ = forked
    opened(svc, "--fill")
    assert svc("repo", "branch", "away").code == 0
    assert svc("switch", "away").code == 0
    back = svc("pr", "checkout", "1")
    assert (back.code, back.out.strip()) == (0, "main"), back
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "home"))
    assert svc("pr", "create", "--head", "topic", "-t", "Alice's", "-R", parent).code == 0
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    other = svc("pr", "checkout", "2")
    assert (
        other.code,
        f"run svc repo clone {parent}, and in that folder svc pr checkout 2" in other.err,
    ) == (
        1,
        True,
    ), other


def test_without_a_session_it_is_the_parent_too(
    forked: tuple[Svc, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    svc, _, _ = forked
    opened(svc, "--fill")
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "nobody"))
    told = svc("pr", "list", "--json", "number")
    assert (told.code, json.loads(told.out or "null")) == (0, [{"number": 1}]), told


def test_a_hidden_parent_leaves_the_fork_its_own(
    forked: tuple[Svc, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    svc, parent, fork = forked
    opened(svc, "--fill")
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "home"))
    assert svc("repo", "visibility", "private", "--yes", "-R", parent).code == 0
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    told = svc("pr", "view", "1")
    assert (told.code, f"{fork} has no proposal #1" in told.err, parent in told.err) == (1, True, False), told


def test_completion_offers_the_parents_proposals(forked: tuple[Svc, str, str]) -> None:
    svc, _, _ = forked
    opened(svc, "-t", "Three")
    assert svc("pr", "list").code == 0
    assert complete.answer(["pr", "view", ""], os.environ, Path.cwd()) == "1\tThree\n"


def test_a_proposal_waits_for_a_review_until_its_verdict(
    forked: tuple[Svc, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    svc, parent, _ = forked
    owner = parent.partition("/")[0]
    assert svc("pr", "create", "--fill", "-r", owner).code == 0
    bobs = os.environ["SVC_HOME"]
    monkeypatch.chdir(tmp_path)

    def waiting() -> object:
        monkeypatch.setenv("SVC_HOME", str(tmp_path / "home"))
        return json.loads(svc("pr", "status", "-R", parent, "--json", "number,why").out)

    assert waiting() == [{"number": 1, "why": ["review"]}]
    assert svc("pr", "review", "1", "-R", parent, "--comment", "-b", "I look at it").code == 0
    assert svc("pr", "review", "1", "-R", parent, "--approve").code == 0
    assert waiting() == []
    monkeypatch.setenv("SVC_HOME", bobs)
    assert svc("pr", "edit", "1", "-R", parent, "--add-reviewer", owner).code == 0
    assert waiting() == [{"number": 1, "why": ["review"]}]
