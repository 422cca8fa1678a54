"""`svc merge`: another branch comes into the folder, and the push says where it came from."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from localstore.core.model import history
from svc.api import Api
from svc.flows.merge import merge as flow
from tests.svc.conftest import Answer, Svc

PAGE = "".join(f"line {n}\n" for n in range(1, 10))


class Folder:
    def __init__(self, svc: Svc, here: Path) -> None:
        self.svc, self.here = svc, here
        self.repo = f"{os.environ['TEST_HANDLE']}/app"
        self.ok("repo", "create", "app")
        self.ok("repo", "init", self.repo)

    def ok(self, *words: str) -> Answer:
        done = self.svc(*words)
        assert done.code == 0, (words, done)
        return done

    def conflicts(self, *words: str) -> Answer:
        """A merge that leaves conflicts, which exits 1."""
        done = self.svc(*words)
        assert (done.code, "conflict in " in done.err, "svc: " in done.err) == (1, True, False), (words, done)
        return done

    def refused(self, *words: str, says: str, code: int = 1) -> None:
        done = self.svc(*words)
        assert done.code == code, (words, done)
        assert says in done.err, done.err

    def write(self, files: dict[str, str | bytes | None]) -> None:
        for name, text in files.items():
            path = self.here / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode() if isinstance(text, str) else text)

    def push(self, files: dict[str, str | bytes | None], message: str = "x") -> str:
        self.write(files)
        return self.ok("push", "-m", message).out.strip()

    def merges_nothing(self, ref: str) -> bool:
        before = self.files()
        done = json.loads(self.ok("merge", ref, "--json", "source,written").out)
        return done["written"] == [] and self.files() == before

    def head(self) -> str:
        return str(json.loads(self.ok("log", "-n", "1", "--json", "id").out)[0]["id"])

    def sides(self, ours: dict[str, str | bytes | None], theirs: dict[str, str | bytes | None]) -> str:
        """The head of `side`, which has `theirs`; the folder is on main with `ours`."""
        self.ok("repo", "branch", "side")
        self.ok("switch", "side")
        head = self.push(theirs, "theirs")
        self.ok("switch", "main")
        self.push(ours, "ours")
        return head

    def files(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.here)): path.read_text()
            for path in sorted(self.here.rglob("*"))
            if path.is_file() and ".svc" not in path.parts
        }

    def sources(self) -> list[str]:
        """What the head's signed provenance names as merged."""
        payload = json.loads(self.ok("repo", "api", f"/api/v1/repos/{self.id}/seals/{self.head()}").out)[
            "payload"
        ]
        from localstore.core import seal
        from localstore.core.encoding import unb64u

        merge = seal.decode(unb64u(payload)).provenance.merge
        return merge.sources if merge is not None else []

    @property
    def id(self) -> str:
        return str(json.loads((self.here / ".svc" / "repo.json").read_text())["repo_id"])


@pytest.fixture
def folder(alice: Svc, tmp_path: Path) -> Folder:
    return Folder(alice, tmp_path / "work")


def test_what_one_side_changed_comes_along_and_both_sides_lines_are_joined(folder: Folder) -> None:
    folder.push({"page": PAGE, "gone": "1\n", "dir/kept": "1\n"})
    side = folder.sides(
        {"page": PAGE.replace("line 1\n", "ONE\n")},
        {"page": PAGE.replace("line 9\n", "NINE\n"), "gone": None, "new": "new\n"},
    )
    told = folder.ok("merge", "side", "--dry-run", "--json", "written,removed")
    assert json.loads(told.out) == {"written": ["new", "page"], "removed": ["gone"]}
    assert folder.files()["page"] == PAGE.replace("line 1\n", "ONE\n")
    told = folder.ok("merge", "side")
    assert "page: both sides changed it; merged" in told.err
    assert folder.files() == {
        "page": PAGE.replace("line 1\n", "ONE\n").replace("line 9\n", "NINE\n"),
        "new": "new\n",
        "dir/kept": "1\n",
    }
    folder.refused("merge", "side", says="svc merge --continue")
    folder.refused("switch", "side", says="svc merge --abort")
    assert folder.ok("merge", "--continue").out.strip() == folder.head()
    assert folder.sources() == [side]
    assert folder.merges_nothing("side")
    folder.refused("merge", "--continue", says="svc merge BRANCH")


def test_a_conflict_is_resolved_and_pushed_and_is_none_again(folder: Folder) -> None:
    folder.push({"page": PAGE})
    side = folder.sides(
        {"page": PAGE.replace("line 5", "ours")}, {"page": PAGE.replace("line 5", "theirs"), "new": "1\n"}
    )
    told = folder.conflicts("merge", "side")
    assert "svc resolve page" in told.err
    files = folder.files()
    (kept,) = [path for path in files if "sync-conflict" in path]
    assert "theirs" in files["page"]
    assert "ours" in files[kept]
    folder.refused("push", "-m", "x", says="svc resolve page")
    folder.refused("merge", "--continue", says="svc resolve page")
    folder.ok("resolve", "page", "--mine")
    folder.ok("push", "-m", "Join both")
    assert folder.sources() == [side]
    assert folder.files() == {"page": PAGE.replace("line 5", "ours"), "new": "1\n"}
    folder.ok("switch", "side")
    folder.push({"page": PAGE.replace("line 5", "theirs").replace("line 9", "later")})
    folder.ok("switch", "main")
    folder.ok("merge", "side")
    assert folder.files()["page"] == PAGE.replace("line 5", "ours").replace("line 9", "later")


def test_a_merge_that_changes_nothing_is_sealed_all_the_same(folder: Folder) -> None:
    folder.push({"page": PAGE})
    side = folder.sides({"page": "ours\n"}, {"page": "theirs\n"})
    folder.conflicts("merge", "side")
    folder.ok("resolve", "page", "--mine")
    folder.ok("merge", "--continue", "-m", "Ours stays")
    assert folder.sources() == [side]
    assert folder.merges_nothing("side")


def test_abort_puts_back_what_was_sealed(folder: Folder) -> None:
    folder.push({"page": PAGE, "gone": "1\n", "b": b"\0one"})
    folder.sides(
        {"page": "ours\n", "b": b"\0ours"}, {"page": "theirs\n", "gone": None, "n/ew": "1\n", "b": b"\0t"}
    )
    before = folder.files()
    folder.conflicts("merge", "side")
    assert len(folder.files()) == 5, "two copies, and what side made"
    folder.ok("merge", "--abort")
    assert folder.files() == before
    assert json.loads(folder.ok("conflicts", "--json", "path").out) == []
    folder.refused("merge", "--abort", says="no merge is open")


def test_edits_that_no_seal_holds_are_not_touched(folder: Folder) -> None:
    folder.push({"page": PAGE, "other": "1\n"})
    folder.sides({"other": "2\n"}, {"page": "theirs\n", "new": "1\n"})
    folder.write({"page": "mine\n"})
    before = folder.files()
    folder.refused("merge", "side", says="svc push")
    assert folder.files() == before
    folder.write({"page": PAGE, "new": "mine\n"})
    folder.refused("merge", "side", says="new")
    folder.write({"new": None, "other": "mine\n"})
    folder.ok("merge", "side")
    assert folder.files() == {"page": "theirs\n", "new": "1\n", "other": "mine\n"}


@pytest.mark.parametrize("ours_is_file", [True, False])
def test_a_directory_keeps_its_name(folder: Folder, ours_is_file: bool) -> None:
    folder.push({"page": PAGE})
    file, directory = {"x": "file\n"}, {"x/in": "in\n"}
    folder.sides(*((file, directory) if ours_is_file else (directory, file)))
    folder.conflicts("merge", "side")
    files = folder.files()
    assert files.pop("x/in") == "in\n"
    assert files.pop("page") == PAGE
    ((name, text),) = files.items()
    assert name.startswith("x.sync-conflict-")
    assert text == "file\n"


@pytest.mark.parametrize("ours_deletes", [True, False])
def test_an_edit_outlives_a_deletion(folder: Folder, ours_deletes: bool) -> None:
    folder.push({"page": PAGE, "x": "1\n"})
    edit, deletion = {"x": "2\n"}, {"x": None}
    folder.sides(*((deletion, edit) if ours_deletes else (edit, deletion)))
    assert "the edit stays" in folder.ok("merge", "side").err
    assert folder.files() == {"page": PAGE, "x": "2\n"}
    folder.ok("merge", "--continue")


def test_a_killed_merge_is_not_sealed_in_part(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.push({"page": PAGE, "x": "1\n"})
    folder.sides({"page": "ours\n"}, {"page": "theirs\n", "x": "2\n"})
    before = folder.files()

    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(flow, "replace_files", killed)
        with pytest.raises(Killed):
            folder.svc("merge", "side")
    folder.refused("push", "-m", "x", says="svc merge --abort")
    folder.ok("merge", "--abort")
    assert folder.files() == before
    folder.conflicts("merge", "side")


def test_usage(folder: Folder) -> None:
    folder.push({"page": PAGE})
    folder.refused("merge", says="--continue", code=2)
    folder.refused("merge", "main", "--abort", says="one of these", code=2)
    folder.refused("merge", "main", "-m", "x", says="--continue", code=2)
    folder.refused("merge", "nowhere", says="no branch, tag or seal")
    assert folder.merges_nothing("main")


def test_an_edit_follows_a_file_that_the_other_side_moved(folder: Folder) -> None:
    first, last = PAGE.replace("line 1\n", "ONE\n"), PAGE.replace("line 9\n", "NINE\n")
    folder.push({"page": PAGE, "other": PAGE + "more\n"})
    folder.sides(
        {"page": first, "other": None, "there": PAGE + "more\n"},
        {"page": None, "dir/page": last, "other": last + "more\n"},
    )
    folder.ok("merge", "side")
    assert folder.files() == {
        "dir/page": first.replace("line 9\n", "NINE\n"),
        "there": last + "more\n",
    }
    folder.ok("merge", "--continue")
    assert folder.merges_nothing("side")


def test_a_conflict_at_the_new_path_keeps_both(folder: Folder) -> None:
    folder.push({"page": PAGE})
    folder.sides(
        {"page": None, "moved": PAGE.replace("line 5", "ours")}, {"page": PAGE.replace("line 5", "theirs")}
    )
    told = folder.conflicts("merge", "side")
    assert "svc resolve moved" in told.err
    files = folder.files()
    (kept,) = [path for path in files if "sync-conflict" in path]
    assert sorted(files) == sorted(["moved", kept])
    assert "theirs" in files["moved"]
    assert "ours" in files[kept]
    folder.ok("resolve", "moved", "--mine")
    folder.ok("merge", "--continue")
    assert folder.files() == {"moved": PAGE.replace("line 5", "ours")}


def test_status_says_that_a_merge_is_open(folder: Folder) -> None:
    folder.push({"a.txt": PAGE})
    folder.sides({"a.txt": PAGE + "ours\n"}, {"b.txt": "theirs\n"})
    folder.ok("merge", "side")
    told = folder.ok("status")
    assert "merged side, not pushed yet: svc merge --continue, or svc merge --abort" in told.err
    assert json.loads(folder.ok("status", "--json", "merging").out) == {"merging": "side"}
    folder.ok("merge", "--continue")
    assert "not pushed yet" not in folder.ok("status").err


def told(folder: Folder, *words: str) -> list[str]:
    return [one["message"] for one in json.loads(folder.ok("log", *words, "--json", "message").out)]


def blamed(folder: Folder, *words: str) -> dict[str, str]:
    """The message of the seal that each line comes from."""
    messages = {one["id"]: one["message"] for one in json.loads(folder.ok("log", "--json", "id,message").out)}
    lines = json.loads(folder.ok("blame", "page", *words, "--json", "seal_id,text").out)
    return {one["text"]: messages[one["seal_id"]] for one in lines}


def test_log_and_blame_tell_what_was_merged(folder: Folder) -> None:
    folder.push({"page": PAGE}, "first")
    ours, theirs = PAGE.replace("line 1\n", "ONE\n"), PAGE.replace("line 9\n", "NINE\n")
    side = folder.sides({"page": ours}, {"page": theirs})
    folder.ok("merge", "side")
    merge = folder.ok("merge", "--continue", "-m", "Join").out.strip()
    assert told(folder) == ["Join", "ours", "theirs", "first"]
    assert told(folder, "--first-parent") == ["Join", "ours", "first"]
    assert told(folder, "page") == ["Join", "ours", "theirs", "first"]
    assert told(folder, "page", "--first-parent") == ["Join", "ours", "first"]
    assert told(folder, "--follow", "page") == ["Join", "ours", "theirs", "first"]
    lines = blamed(folder)
    assert (lines["ONE"], lines["line 5"], lines["NINE"]) == ("ours", "first", "theirs")
    assert blamed(folder, "--first-parent")["NINE"] == "Join"
    (merged, *others) = json.loads(folder.ok("log", "--json", "id,merged").out)
    assert merged == {"id": merge, "merged": [side]}
    assert {tuple(one["merged"]) for one in others} == {()}
    before = json.loads(folder.ok("log", "--first-parent", "--json", "id").out)[1]["id"]
    assert f"Merge:  {before[:12]} {side[:12]}\n" in folder.ok("log", "-n", "1", "--stat").out


def test_a_merge_base_that_the_server_invents_is_refused(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With this branch's own seal as merge base, the merge would remove what only this branch has."""
    folder.push({"page": PAGE})
    folder.ok("repo", "branch", "topic")
    folder.push({"here": "1\n"}, "here")
    folder.ok("switch", "topic")
    folder.push({"there": "1\n"}, "there")
    folder.ok("switch", "main")
    true = Api.send

    def send(api: Api, endpoint: Any, body: Any = None, query: Any = None, **path: str) -> Any:
        answer = true(api, endpoint, body, query, **path)
        return replace(answer, merge_bases=[answer.base]) if endpoint is history.COMPARE else answer

    with monkeypatch.context() as patch:
        patch.setattr(Api, "send", send)
        folder.refused("merge", "topic", says="not the nearest common seal; nothing was merged")
    assert "here" in folder.files()
    folder.ok("merge", "topic")
    assert {"here", "there"} <= set(folder.files())
