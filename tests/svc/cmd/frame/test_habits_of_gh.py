"""What hands that know gh type, and what they are told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.svc.cmd.test_habits import linked
from tests.svc.conftest import Svc

__all__ = ["linked"]


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("org add acme bob", "did you mean: svc org member add"),
        ("org accept acme", "did you mean: svc org invite accept"),
        ("org invite acme bob", "svc org member add ORG HANDLE invites somebody"),
        ("repo invite bob", "svc repo collaborator add HANDLE invites somebody"),
        ("repo protect main", "svc repo protect set PATTERN makes a rule"),
        ("repo protect add main", "svc repo protect set PATTERN makes a rule"),
        ("collaborator add bob", "did you mean: svc repo collaborator"),
        ("protect set main", "did you mean: svc repo protect"),
        ("report create -t x", "svc repo reports create"),
        ("reports list", "did you mean: svc repo reports"),
    ],
)
def test_a_wrong_command_names_the_one_of_its_own_group(svc: Svc, typed: str, told: str) -> None:
    answer = svc(*typed.split())
    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err


def test_a_verb_of_gh_makes_no_branch_and_offers_nothing(linked: Svc) -> None:
    for verb in ("delete", "list", "create", "rename"):
        told = linked("repo", "branch", verb)
        assert (told.code, told.out) == (2, ""), told
        assert "svc repo branch-delete NAME" in told.err
    told = linked("repo", "branch", "delete", "one")
    assert told.code == 2
    assert "svc repo branch-delete NAME deletes one" in told.err
    assert linked("repo", "branch", "--jq", ".[].name").out.split() == ["main"]
    assert linked("repo", "branch", "delete", "--from", "main").code == 0
    for verb in ("accept", "decline", "cancel", "list"):
        told = linked("repo", "transfer", verb, "--yes")
        assert (told.code, told.out) == (2, ""), told
        assert f"svc repo transfer-{verb}" in told.err


def test_a_fork_into_a_full_folder_names_a_way_that_a_fork_has(linked: Svc) -> None:
    assert linked("repo", "visibility", "public", "--yes").code == 0
    Path("app").mkdir()
    Path("app/a.txt").write_text("mine\n")
    told = linked("repo", "fork", "--clone")
    assert (told.code, "give the fork another name with --name" in told.err) == (1, True), told
    assert "svc repo init" not in told.err


def test_a_template_of_gh_is_refused_before_an_issue_is_opened(linked: Svc) -> None:
    told = linked("issue", "create", "-t", "x", "--template", "bug")
    assert (told.code, told.out) == (2, ""), told
    assert "svc issue create --from-template bug" in told.err
    assert linked("issue", "list").out == ""
    assert linked("issue", "create", "-t", "x", "--template", "{{number}}").out.strip() == "1"


def test_a_search_with_qualifiers_of_github_names_the_options(linked: Svc) -> None:
    for command in ("issue", "pr"):
        told = linked(command, "list", "--search", "label:bug login")
        assert told.code == 0
        assert "label:bug is one; choose by options, such as --label NAME" in told.err, told


def test_access_is_asked_for_in_the_folder_of_a_repository(linked: Svc) -> None:
    told = linked("repo", "access", "request", "--role", "write")
    assert (told.code, told.err) == (0, "") or "have the role" in told.err, told


def test_a_label_that_is_missing_names_the_command_that_makes_it(linked: Svc) -> None:
    told = linked("issue", "create", "-t", "x", "-l", "to do")
    assert told.code == 1
    assert "to make it: svc label create 'to do'" in told.err
    assert linked("label", "create", "to do").code == 0


def test_who_may_not_is_refused_without_a_question(
    linked: Svc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = f"{os.environ['TEST_HANDLE']}/app"
    assert linked("repo", "visibility", "public", "--yes").code == 0
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    assert linked("login", "--device-key", "--handle", f"{os.environ['TEST_HANDLE'][:30]}-bob").code == 0
    told = linked("repo", "transfer", "somebody", "-R", repo)
    assert (told.code, f"this needs the role owner in {repo}; you have none" in told.err) == (1, True), told
    told = linked("issue", "create", "-t", "x", "-l", "bug", "-R", repo)
    assert (told.code, f"svc repo access request {repo} --role triage" in told.err) == (1, True), told
