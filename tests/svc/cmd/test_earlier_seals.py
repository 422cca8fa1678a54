"""HEAD, NAME~N, NAME^N and A..B, as git means them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.svc.conftest import Svc

MESSAGES = [f"Seal {n}" for n in range(6)]


def _edit(message: str) -> None:
    Path("a.txt").write_text(f"{message}\n")
    Path(f"{message}.txt").write_text(message)


@pytest.fixture
def linked(alice: Svc) -> Svc:
    """alice in a folder on `main` with six seals; `side` has one more than the fourth of them."""
    assert alice("repo", "create", "app").code == 0
    assert alice("repo", "init", f"{os.environ['TEST_HANDLE']}/app").code == 0
    for at, message in enumerate(MESSAGES):
        _edit(message)
        assert alice("push", "-m", message).code == 0
        if at == 3:
            assert alice("repo", "branch", "side").code == 0
    return alice


def _messages(svc: Svc, *words: str) -> list[str]:
    told = svc("log", *words, "--json", "message")
    assert told.code == 0, (words, told)
    return [one["message"] for one in json.loads(told.out)]


def _id(svc: Svc, ref: str) -> str:
    told = svc("show", ref, "--json", "id", "--jq", ".id")
    assert told.code == 0, (ref, told)
    return told.out.strip()


def test_head_and_those_before_it_wherever_a_ref_is_taken(linked: Svc) -> None:
    assert _messages(linked, "HEAD") == _messages(linked, "@") == _messages(linked) == MESSAGES[::-1]
    assert _messages(linked, "HEAD~4") == _messages(linked, "HEAD^^^^") == MESSAGES[1::-1]
    assert _messages(linked, "main~2", "-n", "1") == ["Seal 3"] == _messages(linked, "side", "-n", "1")
    assert _id(linked, "HEAD^0") == _id(linked, "HEAD~0") == _id(linked, "HEAD")
    short = _id(linked, "HEAD~1")[:12]
    assert _id(linked, f"{short}~2") == _id(linked, "@~3")
    assert linked("show", "HEAD~1:a.txt").out == "Seal 4\n"
    assert linked("diff", "HEAD").out == linked("diff").out == ""
    assert linked("diff", "HEAD~1", "--name-only").out.split("\n")[:-1] == ["Seal 5.txt", "a.txt"]
    assert linked("blame", "a.txt", "--ref", "HEAD~2", "--json", "text").out == '[{"text":"Seal 3"}]\n'
    assert linked("restore", "--source", "HEAD~2", "a.txt").code == 0
    assert Path("a.txt").read_text() == "Seal 3\n"
    assert linked("restore", "a.txt").code == 0
    assert linked("revert", "HEAD").code == 0
    assert Path("a.txt").read_text() == "Seal 4\n"
    assert linked("restore", ".").code == 0
    assert linked("repo", "branch", "older", "--from", "HEAD~3").code == 0
    assert linked("repo", "tag", "create", "v1", "--from", "v0~1").code == 1
    assert linked("repo", "tag", "create", "v1", "--from", "older~1").code == 0
    assert _messages(linked, "v1", "-n", "1") == ["Seal 1"]
    assert linked("repo", "release", "create", "v2", "--seal", "HEAD~1").code == 0
    assert linked("repo", "artifacts", "HEAD~1").code == 0
    assert "Already on main" in linked("switch", "HEAD").err
    assert linked("switch", "HEAD~1").code == 0
    assert Path("a.txt").read_text() == "Seal 4\n"
    assert _messages(linked, "HEAD", "-n", "1") == ["Seal 4"], "the seal that the folder shows"


def test_head_is_what_the_folder_has_and_elsewhere_the_default_branch(
    linked: Svc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    repo = f"{os.environ['TEST_HANDLE']}/app"
    here = Path.cwd()
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    assert linked("repo", "clone", repo, "second").code == 0
    assert _messages(linked, "HEAD~1", "-R", repo, "-n", "1") == ["Seal 4"]
    monkeypatch.chdir(other / "second")
    _edit("Elsewhere")
    assert linked("push", "-m", "Elsewhere").code == 0
    monkeypatch.chdir(here)
    assert _messages(linked, "HEAD", "-n", "1") == ["Seal 5"]
    assert linked("diff", "HEAD").out == "", "what the folder has not is no edit of it"
    assert _messages(linked, "HEAD..main") == ["Elsewhere"]
    assert linked("pull").code == 0
    assert _messages(linked, "HEAD", "-n", "1") == ["Elsewhere"]


def test_before_the_first_seal_is_one_clear_error(linked: Svc) -> None:
    commands = ("show", "log", "diff", "switch")
    for words in (
        (one, typed) for one in commands for typed in ("HEAD~6", "main~999999999", "@^2", "side~3^^")
    ):
        typed = words[1]
        told = linked(*words)
        assert (told.code, told.out) == (1, ""), (words, told)
        assert f"there is no {typed}: " in told.err
        assert len(told.err.splitlines()) == 1


def test_a_branch_without_seals_has_none_before(alice: Svc) -> None:
    assert alice("repo", "create", "empty").code == 0
    assert alice("repo", "init", f"{os.environ['TEST_HANDLE']}/empty").code == 0
    for typed in ("HEAD", "HEAD~1", "main^"):
        told = alice("show", typed)
        assert (told.code, told.out) == (1, "")
        assert "has no seals yet" in told.err, told


def test_unknown_names_and_files_of_such_names(linked: Svc) -> None:
    for typed in ("nope~1", "HEAD~x", "nope..main", "main..nope", "HEAD~9999999999"):
        told = linked("log", typed)
        assert told.code == 1, (typed, told)
        assert "Traceback" not in told.err
    Path("HEAD").write_text("mine\n")
    assert linked("diff", "HEAD", "--name-only").out == "HEAD\n"
    for name in ("HEAD", "@", "a~1", "a^", "a..b"):
        assert linked("repo", "branch", name).code != 0, "a name that would be read as something else"


def test_ranges_of_log_and_diff(linked: Svc) -> None:
    assert linked("switch", "side").code == 0
    _edit("Side")
    assert linked("push", "-m", "Side").code == 0
    assert _messages(linked, "main..side") == _messages(linked, "main..") == ["Side"]
    assert _messages(linked, "side..main") == _messages(linked, "..main") == ["Seal 5", "Seal 4"]
    assert _messages(linked, "side..main", "-n", "1") == ["Seal 5"]
    assert _messages(linked, "side..main", "Seal 4.txt") == ["Seal 4"]
    assert _messages(linked, "HEAD~2..HEAD") == ["Side", "Seal 3"]
    assert _messages(linked, "main..main~2") == []
    assert linked("diff", "main...side", "--name-only").out == "Side.txt\na.txt\n"
    assert linked("diff", "main..side", "--name-only").out.split("\n")[:3] == [
        "Seal 4.txt", "Seal 5.txt", "Side.txt",
    ]  # fmt: skip
    told = linked("log", "main...side")
    assert (told.code, "svc log main..side lists what side has and main has not" in told.err) == (2, True)
    told = linked("show", "main..side")
    assert (told.code, "svc log main..side lists what side has alone" in told.err) == (2, True)


def test_steps_add_up(linked: Svc) -> None:
    ids = [one["id"] for one in json.loads(linked("log", "--json", "id").out)]

    @settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(st.integers(0, 3), max_size=3), st.sampled_from(["HEAD", "main", ids[0][:10]]))
    def same(steps: list[int], start: str) -> None:
        whole = sum(steps)
        typed = start + "".join(f"~{step}" if step != 1 else "^" for step in steps)
        if whole < len(ids):
            assert _id(linked, typed) == _id(linked, f"{start}~{whole}") == ids[whole]
        else:
            assert linked("show", typed).code == 1

    same()


def test_a_range_with_merges_is_that_of_git(linked: Svc) -> None:
    """The same history in git, where a merge has what it was merged from as its second parent."""
    assert linked("switch", "side").code == 0
    for message in ("Side 0", "Merged", "Side 1"):
        if message == "Merged":
            assert linked("merge", "main~1").code == 0
            assert linked("merge", "--continue", "-m", message).code == 0
        else:
            Path("side.txt").write_text(message)
            assert linked("push", "-m", message).code == 0
    merged = _id(linked, "main~1")
    Path("git").mkdir()

    def git(*words: str) -> str:
        who = {f"GIT_{one}_{what}": "a@b" for one in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = subprocess.run(
            ["git", "-C", "git", *words], capture_output=True, text=True, check=True, env=os.environ | who
        )
        return done.stdout.strip()

    git("init", "-q")
    tree = git("write-tree")
    commits: dict[str, str] = {}
    for name in ("main", "side"):
        for one in json.loads(linked("log", name, "--json", "id,parents,message").out)[::-1]:
            parents = one["parents"] + ([merged] if one["message"] == "Merged" else [])
            above = [word for parent in parents for word in ("-p", commits[parent])]
            commits.setdefault(one["id"], git("commit-tree", tree, *above, "-m", one["id"]))
        git("update-ref", f"refs/heads/{name}", commits[_id(linked, name)])
    ends = ("main", "main~1", "main~2", "main~4", "side", "side~1", "side~2", "side~3")
    for typed in (f"{old}..{new}" for old in ends for new in ends):
        ours = {one["id"] for one in json.loads(linked("log", typed, "--json", "id").out)}
        assert ours == set(git("log", "--format=%s", typed).split()), typed
    for typed in ends:
        ours = [one["id"] for one in json.loads(linked("log", typed, "--first-parent", "--json", "id").out)]
        assert ours == git("log", "--first-parent", "--format=%s", typed).split(), typed
    for typed in (*ends, "main^", "side^^", "side^1~2", "side^0", "side~1^2", "side^^2~1"):
        assert _id(linked, typed) == git("log", "-1", "--format=%s", typed), typed


def test_pages_of_a_range_fit_together(linked: Svc) -> None:
    repo = linked("repo", "view", "--json", "id", "--jq", ".id").out.strip()
    at = f"/api/v1/repos/{repo}/commits"
    found: list[str] = []
    cursor = ""
    while True:
        told = linked("repo", "api", f"{at}?ref=main&without={_id(linked, 'main~5')}&limit=2{cursor}")
        assert told.code == 0, told
        page = json.loads(told.out)
        found += [one["message"] for one in page["items"]]
        if page["next_cursor"] is None:
            break
        assert len(page["items"]) == 2
        cursor = f"&cursor={page['next_cursor']}"
    assert found == MESSAGES[:0:-1]
    for wrong in (
        "without=nope",
        f"without={'0' * 64}",
        "without=main&path=a.txt",
        "without=main&prefix=abcd",
    ):
        told = linked("repo", "api", f"{at}?{wrong}")
        assert told.code == 1, (wrong, told)
    assert linked("repo", "api", f"{at}?without=main&cursor=WyJhIiwxXQ").code == 1
