"""`svc pr merge` and `svc pr update-branch`: what is signed was worked out here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from localstore.core import seal as seals
from localstore.core.encoding import b64u, unb64u
from localstore.core.model import merge as merges
from localstore.core.model.merge import MergePrepareRequest, PreparedMerge
from svc.api import Api
from tests.svc.cmd.test_merge import PAGE, Folder
from tests.svc.conftest import Svc


@pytest.fixture
def folder(alice: Svc, tmp_path: Path) -> Folder:
    found = Folder(alice, tmp_path / "work")
    found.push({"page": PAGE})
    return found


def proposed(folder: Folder, ours: dict[str, Any], *theirs: dict[str, Any]) -> str:
    """Main has `ours`, `topic` each of `theirs` as a seal, and is proposed. The folder is on main."""
    folder.ok("repo", "branch", "topic")
    folder.ok("switch", "topic")
    for n, files in enumerate(theirs, 1):
        folder.push(files, f"topic {n}")
    folder.ok("switch", "main")
    if ours:
        folder.push(ours, "ours")
    made = folder.ok("pr", "create", "--head", "topic", "--base", "main", "-t", "Bring it", "-b", "")
    return made.out.strip().rpartition("/")[2].rpartition("#")[2]


def number(folder: Folder) -> str:
    return str(json.loads(folder.ok("pr", "list", "--json", "number").out)[0]["number"])


def log(folder: Folder) -> list[str]:
    return [one["message"] for one in json.loads(folder.ok("log", "main", "--json", "message").out)]


def blamed(folder: Folder, path: str, *options: str) -> list[tuple[str, str]]:
    """The lines of a file, each with the message of its seal."""
    lines = json.loads(folder.ok("blame", path, *options, "--json", "seal_id,text").out)
    return [
        (one["text"], folder.ok("show", one["seal_id"], "--json", "message", "--jq", ".message").out.strip())
        for one in lines
    ]


def changed(*pairs: tuple[int, str]) -> str:
    page = PAGE
    for line, text in pairs:
        page = page.replace(f"line {line}\n", f"{text}\n")
    return page


@pytest.mark.parametrize(
    ("option", "messages"),
    [
        ([], ["Bring it (#1)", "topic 2", "topic 1", "x"]),
        (["--squash"], ["Bring it (#1)", "ours", "x"]),
        (["--squash", "-m", "All of it"], ["All of it", "ours", "x"]),
        (["--rebase"], ["topic 2", "topic 1", "ours", "x"]),
    ],
)
def test_each_way(folder: Folder, option: list[str], messages: list[str]) -> None:
    ours = {"page": changed((1, "ONE"))} if option else {}
    proposed(folder, ours, {"page": changed((9, "NINE"))}, {"new": "1\n"})
    n = number(folder)
    told = folder.ok("pr", "merge", n, *option, "--dry-run", "--json", "changed,merged")
    merged = ["page"] if option else []
    assert json.loads(told.out)["merged"] == merged
    assert log(folder)[0] == ("ours" if option else "x"), "a dry run merges nothing"
    head = folder.ok("repo", "branch", "--jq", '.[] | select(.name == "topic") | .head').out.strip()
    words = ["pr", "merge", n, *option, "--delete-branch"]
    if option:  # the base gets other seals, so the branch alone leads to its own
        way_back = f"svc repo branch topic --from {head} makes it again"
        folder.refused(*words, says=f"leaves 2 seals on no branch or tag ({way_back})", code=2)
        assert log(folder)[0] == "ours"
        assert way_back in folder.ok(*words, "--yes").err
    else:
        assert "makes it again" not in folder.ok(*words).err
    assert log(folder) == messages
    folder.ok("pull")
    page = changed((1, "ONE"), (9, "NINE")) if option else changed((9, "NINE"))
    assert folder.files() == {"page": page, "new": "1\n"}
    assert blamed(folder, "new") == [("1", "topic 2")]
    if option:
        assert dict(blamed(folder, "page"))["NINE"] == "topic 1"
        assert dict(blamed(folder, "page", "--first-parent"))["NINE"] == messages[-3]
    assert json.loads(folder.ok("pr", "view", n, "--json", "state").out)["state"] == "merged"
    assert [one["name"] for one in json.loads(folder.ok("repo", "branch", "--json", "name").out)] == ["main"]
    if option:
        folder.ok("repo", "branch", "topic", "--from", head[:8])


@pytest.mark.parametrize("held", ["tag", "branch", "rule"])
def test_no_question_for_a_held_one(folder: Folder, held: str) -> None:
    proposed(folder, {"page": changed((1, "ONE"))}, {"page": changed((9, "NINE"))})
    if held == "rule":
        folder.ok("repo", "protect", "set", "topic", "--lock-writes")
        done = folder.ok("pr", "merge", number(folder), "--squash", "--delete-branch", "--yes")
        assert "branch topic stays: it is protected" in done.err
        return
    folder.ok("repo", *(["tag", "create"] if held == "tag" else ["branch"]), "kept", "--from", "topic")
    done = folder.ok("pr", "merge", number(folder), "--squash", "--delete-branch")
    assert "makes it again" not in done.err


def test_a_conflict_names_the_files_and_the_way_out_which_works(folder: Folder) -> None:
    proposed(folder, {"page": changed((5, "ours"))}, {"page": changed((5, "theirs")), "new": "1\n"})
    n = number(folder)
    head = folder.head()
    folder.refused("pr", "merge", n, says="--squash")
    folder.refused("pr", "merge", n, "--squash", says=f"svc pr checkout {n}")
    folder.refused("pr", "update-branch", n, says="page")
    assert folder.head() == head
    folder.ok("pr", "checkout", n)
    folder.conflicts("merge", "main")
    folder.ok("resolve", "page", "--mine")
    folder.ok("push", "-m", "Join main")
    folder.ok("pr", "merge", n)
    assert log(folder) == ["Bring it (#1)", "Join main", "ours", "topic 1", "x"]
    folder.ok("switch", "main")
    assert "topic 1" in {message for _, message in blamed(folder, "new")}
    assert folder.files() == {"page": changed((5, "theirs")), "new": "1\n"}


def test_update_branch_brings_the_base(folder: Folder) -> None:
    proposed(folder, {"page": changed((1, "ONE"))}, {"page": changed((9, "NINE"))})
    n = number(folder)
    told = folder.ok("pr", "update-branch", n)
    assert "joined by lines" in told.err
    assert json.loads(folder.ok("pr", "view", n, "--json", "state,version").out) == {
        "state": "open",
        "version": 2,
    }
    folder.refused("pr", "update-branch", n, says="everything of main")
    folder.ok("switch", "topic")
    assert folder.files() == {"page": changed((1, "ONE"), (9, "NINE"))}
    folder.ok("pr", "merge", n)


def test_only_the_head_that_was_looked_at_is_merged(folder: Folder) -> None:
    proposed(folder, {}, {"new": "1\n"}, {"new": "2\n"})
    n = number(folder)
    newest, before = [one["id"] for one in json.loads(folder.ok("log", "topic", "--json", "id").out)][:2]
    folder.refused("pr", "merge", n, "--head", before, says=f"moved to {newest[:12]}; look at it again")
    folder.refused("pr", "merge", n, "--head", newest[:7], says="8 to 64 hex digits", code=2)
    folder.refused("pr", "merge", n, "--head", "topic", says="8 to 64 hex digits", code=2)
    assert json.loads(folder.ok("pr", "view", n, "--json", "state").out)["state"] == "open"
    folder.ok("pr", "merge", n, "--head", newest[:8])
    assert json.loads(folder.ok("pr", "view", n, "--json", "state").out)["state"] == "merged"


def test_a_draft_and_usage(folder: Folder) -> None:
    proposed(folder, {}, {"new": "1\n"})
    n = number(folder)
    folder.ok("pr", "ready", n, "--undo")
    folder.refused("pr", "merge", n, says=f"svc pr ready {n}")
    folder.ok("pr", "ready", n)
    folder.refused("pr", "merge", n, "--squash", "--rebase", says="use one of them", code=2)
    folder.refused("pr", "merge", n, "--rebase", "-m", "x", says="keeps the messages", code=2)
    folder.refused("pr", "merge", n, "--merge", says="TR_REPO_MERGE_ENABLED")


def _first(prepared: PreparedMerge, **members: Any) -> PreparedMerge:
    """The first seal with other members in its payload."""
    one = prepared.seals[0]
    payload = seals.decode(unb64u(one.bytes))
    raw = seals.encode(msgspec.structs.replace(payload, **members))
    lie = msgspec.structs.replace(one, bytes=b64u(raw), digest=seals.seal_id(raw))
    return msgspec.structs.replace(prepared, seals=[lie, *prepared.seals[1:]])


def _without_origin(prepared: PreparedMerge) -> Any:
    provenance = seals.decode(unb64u(prepared.seals[0].bytes)).provenance
    return msgspec.structs.replace(provenance, merge=None)


LIES: dict[str, Callable[[PreparedMerge], PreparedMerge]] = {
    "tree": lambda one: _first(one, content_digest="0" * 64),
    "branch": lambda one: _first(one, branch="other"),
    "parent": lambda one: _first(one, parents=["0" * 64]),
    "message": lambda one: _first(one, message="other"),
    "repository": lambda one: _first(one, repo_id="other"),
    "merge origin": lambda one: _first(one, provenance=_without_origin(one)),
    "base or head": lambda one: msgspec.structs.replace(one, head_seal=one.base_seal),
    "number of seals": lambda one: msgspec.structs.replace(one, seals=one.seals * 2),
    "merge base": lambda one: msgspec.structs.replace(one, merge_bases=[]),
    "nearest common": lambda one: msgspec.structs.replace(one, merge_bases=[one.base_seal]),
    "strategy": lambda one: msgspec.structs.replace(one, strategy="fast_forward"),
    "another strategy": lambda one: msgspec.structs.replace(one, strategy="update"),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies(folder: Folder, monkeypatch: pytest.MonkeyPatch, lie: str) -> None:
    """What the server makes up is not signed."""
    proposed(folder, {"page": changed((1, "ONE"))}, {"page": changed((9, "NINE"))})
    true = Api.send

    def send(api: Api, endpoint: Any, body: Any = None, query: Any = None, **path: str) -> Any:
        assert endpoint is not merges.FINALIZE, "it was signed"
        answer = true(api, endpoint, body, query, **path)
        return LIES[lie](answer) if endpoint is merges.PREPARE else answer

    monkeypatch.setattr(Api, "send", send)
    folder.refused("pr", "merge", number(folder), "--squash", "-m", "mine", says=lie)


def test_a_correct_merge_that_was_not_asked_for_is_not_signed(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server prepares a squash into the base for somebody who brings the base into the branch."""
    proposed(folder, {"page": changed((1, "ONE"))}, {"page": changed((9, "NINE"))})
    true = Api.send

    def send(api: Api, endpoint: Any, body: Any = None, query: Any = None, **path: str) -> Any:
        if endpoint is merges.UPDATE_PREPARE:
            asked = MergePrepareRequest(
                body.device_key_id, "squash", body.message, body.expected_head, body.expected_base
            )
            return true(api, merges.PREPARE, asked, query, **path)
        assert endpoint is not merges.UPDATE_FINALIZE, "it was signed"
        return true(api, endpoint, body, query, **path)

    monkeypatch.setattr(Api, "send", send)
    folder.refused("pr", "update-branch", number(folder), says="another strategy; nothing was signed")


@pytest.mark.parametrize("option", ["--squash", "--rebase"])
def test_an_edit_follows_a_move(folder: Folder, option: str) -> None:
    """This machine finds the same moves, or it would not sign."""
    proposed(folder, {"page": changed((1, "ONE"))}, {"page": None, "dir/other": changed((9, "NINE"))})
    told = folder.ok("pr", "merge", number(folder), option, "--json", "merged")
    assert json.loads(told.out)["merged"] == ["dir/other"]
    folder.ok("pull")
    assert folder.files() == {"dir/other": changed((1, "ONE"), (9, "NINE"))}


def test_update_branch_brings_an_edit_to_where_the_branch_moved_the_file(folder: Folder) -> None:
    proposed(folder, {"page": changed((1, "ONE"))}, {"page": None, "other": changed((9, "NINE"))})
    folder.ok("pr", "update-branch", number(folder))
    folder.ok("switch", "topic")
    assert folder.files() == {"other": changed((1, "ONE"), (9, "NINE"))}


def test_a_weaker_rule_names_what_merges_at_once(folder: Folder) -> None:
    """Before and afterwards. Nothing is asked if nothing merges."""
    folder.ok("repo", "protect", "set", "main", "--required-approvals", "2")
    n = proposed(folder, {}, {"page": changed((9, "NINE"))})
    folder.ok("pr", "merge", n, "--squash", "--auto")
    folder.ok("repo", "protect", "set", "main", "--required-approvals", "1")
    merges_now = f"#{n} waits with auto merge and merges into main at once"
    folder.refused("repo", "protect", "set", "main", says=merges_now, code=2)
    folder.refused("repo", "protect", "clear", "main", says=merges_now, code=2)
    done = folder.ok("repo", "protect", "clear", "main", "--yes").err
    assert f"Removed the rule of main. #{n} (Bring it) merged into main" in done
    assert "to bring it back: svc repo protect set main --required-approvals 1" in done


def test_a_check_that_is_required_no_more_names_what_merges_at_once(folder: Folder) -> None:
    folder.ok("repo", "checks", "enable", "ci/test")
    folder.ok("repo", "protect", "set", "main", "--require-checks")
    n = proposed(folder, {}, {"page": changed((9, "NINE"))})
    folder.ok("pr", "merge", n, "--squash", "--auto")
    merges_now = f"#{n} waits with auto merge and merges into main at once"
    folder.refused("repo", "checks", "disable", "ci/test", says=merges_now, code=2)
    done = folder.ok("repo", "checks", "disable", "CI/test", "--yes").err
    assert f"#{n} (Bring it) merged into main" in done
