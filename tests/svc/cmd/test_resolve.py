"""`svc conflicts` and `svc resolve`: out of a conflict, with nothing lost on the way."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from svc.console.table import size
from tests.svc.cmd.frame.test_editor import at_terminal
from tests.svc.conftest import Svc

BASE = b"import os\n\nPORT = 8080\n\ndone = 1\n"
THEIRS = b"import os\nimport re\n\nPORT = 9000\n\ndone = 1\n"
MINE = b"import os\n\nPORT = 3000\n\ndone = 2\n"
MARKED = (
    b"import os\nimport re\n\n"
    b"<<<<<<< svc conflict: the branch's version\nPORT = 9000\n"
    b"=======\nPORT = 3000\n>>>>>>> svc conflict: yours, kept as COPY\n"
    b"\ndone = 2\n"
)
FILE = Path("src/app.py")


@pytest.fixture
def kept(alice: Svc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A linked folder in which a pull met theirs, pushed from another folder, and kept mine; the copy."""
    assert alice("repo", "create", "app").code == 0
    assert alice("repo", "init", f"{handle()}/app").code == 0
    FILE.parent.mkdir()
    FILE.write_bytes(BASE)
    assert alice("push", "-m", "First").code == 0
    here, other = Path.cwd(), tmp_path / "other"
    assert alice("repo", "clone", f"{handle()}/app", str(other)).code == 0
    monkeypatch.chdir(other)
    FILE.write_bytes(THEIRS)
    assert alice("push", "-m", "Theirs").code == 0
    monkeypatch.chdir(here)
    FILE.write_bytes(MINE)
    told = alice("pull", "--merge")
    assert (told.code, "conflict in src/app.py" in told.err) == (1, True), told
    [copy] = FILE.parent.glob("app.sync-conflict-*.py")
    assert (FILE.read_bytes(), copy.read_bytes()) == (THEIRS, MINE)
    return copy


def handle() -> str:
    return os.environ["TEST_HANDLE"]


def laid_out(kept: Path) -> bytes:
    """What an editor is given."""
    return MARKED.replace(b"COPY", str(kept).encode())


def editor(tmp_path: Path, body: str) -> str:
    """An editor that does `body` to `text`, the file's bytes, after it wrote to `seen` what it found."""
    program = tmp_path / "an editor.py"
    program.write_text(
        "import sys, pathlib\nfile = pathlib.Path(sys.argv[-1])\ntext = file.read_bytes()\n"
        f"pathlib.Path({str(tmp_path / 'seen')!r}).write_bytes(text)\n{body}\nfile.write_bytes(text)\n"
    )
    return f"{sys.executable} '{program}'"


def trashed(tmp_path: Path) -> dict[str, bytes]:
    """What is in the trash, by path."""
    trash = tmp_path / "home" / "trash"
    return {str(one.relative_to(trash)).partition("/")[2]: one.read_bytes() for one in trash.rglob("*.py")}


def open_conflicts(svc: Svc) -> list[str]:
    return [one["path"] for one in json.loads(svc("conflicts", "--json").out)]


def test_conflicts_are_listed_with_lines_copy_and_person(alice: Svc, kept: Path) -> None:
    told = alice("conflicts")
    assert (told.code, told.err) == (1, "")
    assert told.out.splitlines()[-1].split("\t") == [str(FILE), str(kept), "4", "3", ""]
    [one] = json.loads(alice("conflicts", "--json").out)
    assert one == {"path": str(FILE), "kept_as": str(kept), "lines": "4", "kept_lines": "3", "by": None}


def test_a_diff_names_the_copy_and_shows_its_text_only_if_asked(alice: Svc, kept: Path) -> None:
    kept.write_bytes(MINE * 1000)
    Path("new.txt").write_text("new\n")
    told = alice("diff")
    label = f"{kept} ({size(len(MINE) * 1000)}), your version of {FILE}, which is in conflict"
    assert f"{label}; to see it: svc diff {kept}\n" in told.out
    assert "+new\n" in told.out and "+PORT" not in told.out
    assert "+PORT = 3000\n" in alice("diff", str(kept)).out
    assert str(kept) in alice("diff", "--name-only").out.splitlines()
    records = {record["path"]: record for record in json.loads(alice("diff", "--json", "path,patch").out)}
    assert "+PORT = 3000\n" in records[str(kept)]["patch"]  # a program gets everything
    kept.unlink()
    assert str(kept) not in alice("diff").out


def test_a_script_sees_by_the_exit_code_whether_a_conflict_stands(alice: Svc, kept: Path) -> None:
    assert alice("conflicts", "--json").code == 1
    before = alice("log", "--json", "id").out
    for words in (("push", "-m", "Both"), ("push", "--dry-run"), ("push", "-m", "Both", "--json")):
        told = alice(*words)
        assert (told.code, told.out) == (1, ""), told
        assert f"nothing was sent: {FILE} is in conflict, and your version is {kept}" in told.err
        assert f"svc resolve {FILE}" in told.err
    assert alice("log", "--json", "id").out == before
    assert alice("resolve", str(FILE), "--mine").code == 0
    assert alice("conflicts").code == 0
    assert alice("push", "-m", "Mine").code == 0


def test_a_merge_beside_the_conflict_of_a_pull_publishes_no_copy(
    alice: Svc, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Path.cwd()
    monkeypatch.chdir(tmp_path / "other")
    assert alice("repo", "branch", "side").code == 0
    assert alice("switch", "side").code == 0
    Path("side.txt").write_text("side\n")
    assert alice("push", "-m", "Side").code == 0
    monkeypatch.chdir(here)
    told = alice("merge", "side")
    assert told.code == 0, told
    for words in (("push", "-m", "Both"), ("merge", "--continue")):
        refused = alice(*words)
        assert (refused.code, refused.out) == (1, ""), refused
        assert f"svc resolve {FILE}" in refused.err
    assert alice("resolve", str(FILE), "--mine").code == 0
    assert alice("push", "-m", "Both").code == 0


def test_status_and_push_say_which_file_is_the_copy_of_a_conflict(alice: Svc, kept: Path) -> None:
    told = alice("status")
    assert f"new\t{kept}\tyour version of {FILE}, a conflict; svc resolve {FILE}" in told.out
    assert "to end a conflict: svc resolve PATH" in told.err
    assert json.loads(alice("status", "--json", "unresolved").out) == {"unresolved": {str(kept): str(FILE)}}
    assert alice("resolve", str(FILE), "--theirs").code == 0
    assert "not resolved" not in alice("status").err


def test_theirs_keeps_the_file_and_trashes_the_copy(alice: Svc, kept: Path, tmp_path: Path) -> None:
    told = alice("resolve", str(FILE), "--theirs", "--json")
    assert told.code == 0, told
    assert json.loads(told.out)["how"] == "theirs"
    assert (FILE.read_bytes(), kept.exists()) == (THEIRS, False)
    assert trashed(tmp_path) == {str(kept): MINE}
    assert open_conflicts(alice) == []


def test_mine_replaces_the_file_and_keeps_what_it_held(alice: Svc, kept: Path, tmp_path: Path) -> None:
    told = alice("resolve", str(kept), "--mine")  # the copy names the conflict as well
    assert (told.code, told.out) == (0, f"{FILE}\n"), told
    assert str(tmp_path / "home" / "trash") in told.err
    assert (FILE.read_bytes(), kept.exists()) == (MINE, False)
    assert trashed(tmp_path) == {str(kept): MINE, str(FILE): THEIRS}
    assert open_conflicts(alice) == []
    assert json.loads(alice("status", "--json", "changed,new").out) == {"changed": [str(FILE)], "new": []}


def test_a_copy_that_was_edited_counts_as_mine(alice: Svc, kept: Path) -> None:
    kept.write_bytes(b"PORT = 1234\n")
    assert alice("resolve", str(FILE), "--mine").code == 0
    assert FILE.read_bytes() == b"PORT = 1234\n"


def test_a_copy_that_was_deleted_ends_the_conflict(alice: Svc, kept: Path) -> None:
    kept.unlink()
    told = alice("resolve", str(FILE), "--mine")
    assert told.code == 0
    assert f"{kept} was deleted" in told.err + told.out
    assert FILE.read_bytes() == THEIRS
    assert "no conflict" in alice("resolve", str(FILE), "--mine").err


def test_a_list_drops_conflicts_whose_copy_is_gone_and_says_so(alice: Svc, kept: Path) -> None:
    kept.unlink()
    told = alice("conflicts", "--json")
    assert (told.code, json.loads(told.out)) == (0, [])
    assert f"{kept} was deleted" in told.err
    assert alice("conflicts").err == ""


def test_the_editor_shows_what_landed_and_only_real_conflicts(alice: Svc, kept: Path, tmp_path: Path) -> None:
    solve = "text = text[:text.index(b'<<<')] + b'PORT = 9300\\n' + text[text.index(b'\\ndone'):]"
    told = at_terminal(editor(tmp_path, solve), "resolve", str(FILE))
    assert told.code == 0, told
    assert (tmp_path / "seen").read_bytes() == laid_out(kept)
    assert FILE.read_bytes() == b"import os\nimport re\n\nPORT = 9300\n\ndone = 2\n"
    assert not kept.exists()
    assert trashed(tmp_path) == {str(kept): MINE, str(FILE): THEIRS}
    assert open_conflicts(alice) == []


def unchanged(svc: Svc, kept: Path, tmp_path: Path) -> bool:
    files = FILE.read_bytes(), kept.read_bytes()
    return files == (THEIRS, MINE) and open_conflicts(svc) == [str(FILE)] and not trashed(tmp_path)


def test_what_is_saved_with_markers_is_refused_and_not_lost(alice: Svc, kept: Path, tmp_path: Path) -> None:
    told = at_terminal(editor(tmp_path, "text = b'half done\\n' + text"), "resolve", str(FILE))
    assert told.code == 1, told
    assert "markers" in told.err
    assert unchanged(alice, kept, tmp_path)
    said = re.search(r"is kept in (\S+);.*then: (cp .*)$", told.err, re.MULTILINE)
    assert said, told.err
    text = Path(said[1]).read_bytes()
    assert text == b"half done\n" + laid_out(kept)
    Path(said[1]).write_bytes(b"all done\n")  # finished, and then as the message says
    copy, _, resolve = said[2].partition(" && svc ")
    assert os.system(copy) == 0
    assert alice(*resolve.split()).code == 0
    assert (FILE.read_bytes(), kept.exists()) == (b"all done\n", False)
    shutil.rmtree(Path(said[1]).parent)


@pytest.mark.parametrize(
    ("body", "said"),
    [("", "markers"), ("sys.exit(3)", "ended with 3"), ("text = b'\\xff'", "not text")],
    ids=["same", "fails", "bytes"],
)
def test_nothing_is_written_by_hand(alice: Svc, kept: Path, tmp_path: Path, body: str, said: str) -> None:
    told = at_terminal(editor(tmp_path, body), "resolve", str(FILE))
    assert told.code == 1, told
    assert said in told.err
    assert ("is kept in" in told.err) == ("xff" in body)
    assert unchanged(alice, kept, tmp_path)


def test_a_file_that_changes_meanwhile_is_not_overwritten(alice: Svc, kept: Path, tmp_path: Path) -> None:
    body = f"pathlib.Path({str(FILE.absolute())!r}).write_bytes(b'saved meanwhile\\n'); text = b'joined\\n'"
    told = at_terminal(editor(tmp_path, body), "resolve", str(FILE))
    assert told.code == 1, told
    assert "changed meanwhile" in told.err
    assert "is kept in" in told.err
    assert FILE.read_bytes() == b"saved meanwhile\n"
    assert kept.exists()


def test_nobody_edits_where_all_of_mine_is_in_the_file_already(
    alice: Svc, kept: Path, tmp_path: Path
) -> None:
    FILE.write_bytes(MINE)
    told = at_terminal(editor(tmp_path, ""), "resolve", str(FILE))
    assert told.code == 0, told
    assert not (tmp_path / "seen").exists()
    assert (FILE.read_bytes(), kept.exists()) == (MINE, False)


def test_a_program_gets_four_files_as_from_git(alice: Svc, kept: Path, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    tool = f'cat "$BASE" "$LOCAL" "$REMOTE" "$MERGED" > {shown}; printf "joined\\n" > "$MERGED"'
    told = alice("resolve", str(FILE), "--tool", tool)
    assert told.code == 0, told
    assert shown.read_bytes() == BASE + MINE + THEIRS + laid_out(kept)
    assert (FILE.read_bytes(), kept.exists()) == (b"joined\n", False)


def test_a_program_without_variables_gets_the_files_in_order(alice: Svc, kept: Path, tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_text('#!/bin/sh\ncat "$1" "$2" "$3" > "$4"\n')
    program.chmod(0o755)
    assert alice("resolve", str(FILE), "--tool", str(program)).code == 0
    assert FILE.read_bytes() == BASE + MINE + THEIRS


@pytest.mark.parametrize(
    ("tool", "said"), [("false", "ended with 1"), ("true", "markers")], ids=["fails", "idle"]
)
def test_nothing_is_joined_by_a_tool(alice: Svc, kept: Path, tmp_path: Path, tool: str, said: str) -> None:
    told = alice("resolve", str(FILE), "--tool", tool)
    assert told.code == 1
    assert said in told.err
    assert unchanged(alice, kept, tmp_path)


@pytest.mark.parametrize("variable", ["EDITOR", "VISUAL"])
def test_a_named_editor_runs_in_a_pipe(
    alice: Svc, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(variable, editor(tmp_path, "text = b'both\\n'"))
    assert alice("resolve", str(FILE)).code == 0
    assert FILE.read_bytes() == b"both\n"
    assert open_conflicts(alice) == []


def test_without_terminal_and_flag_the_flags_are_named(
    alice: Svc, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("EDITOR", "VISUAL"):
        monkeypatch.delenv(variable, raising=False)
    told = alice("resolve", str(FILE))
    assert told.code == 2
    assert all(flag in told.err for flag in ("--mine", "--theirs", "--tool"))
    assert alice("resolve", str(FILE), "--mine", "--theirs").code == 2
    assert unchanged(alice, kept, tmp_path)


def test_a_file_that_is_gone_or_bytes_now_wants_a_whole_version(alice: Svc, kept: Path) -> None:
    FILE.write_bytes(b"\0")
    told = alice("resolve", str(FILE), "--tool", "true")
    assert (told.code, "is not text;" in told.err, "--mine" in told.err) == (1, True, True)
    FILE.unlink()
    told = alice("resolve", str(FILE), "--tool", "true")
    assert (told.code, "was deleted" in told.err) == (1, True)
    assert alice("resolve", str(FILE), "--mine").code == 0
    assert FILE.read_bytes() == MINE


def test_a_path_without_conflict_is_named(alice: Svc, kept: Path) -> None:
    for way in (["--mine"], []):  # an editor, for which there is no terminal here, would not help
        told = alice("resolve", "src/other.py", *way)
        assert told.code == 1
        assert "src/other.py has no conflict in this folder; see: svc conflicts" in told.err


def test_a_resolved_file_is_pushed_as_any_other(alice: Svc, kept: Path, tmp_path: Path) -> None:
    assert alice("resolve", str(FILE), "--mine").code == 0
    assert alice("push", "-m", "Resolved").code == 0
    other = tmp_path / "third"
    assert alice("repo", "clone", f"{handle()}/app", str(other)).code == 0
    assert (other / FILE).read_bytes() == MINE
    assert not (other / kept).exists()


def second_conflict(svc: Svc, other: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another pull meets theirs at the same path, and keeps what was made of it here; the second copy."""
    here, before = Path.cwd(), set(FILE.parent.iterdir())
    monkeypatch.chdir(other)
    assert svc("pull").code == 0
    FILE.write_bytes(THEIRS.replace(b"9000", b"9001"))
    assert svc("push", "-m", "Theirs again").code == 0
    monkeypatch.chdir(here)
    FILE.write_bytes(THEIRS.replace(b"9000", b"3001"))
    assert svc("pull", "--merge").code == 1
    [copy] = set(FILE.parent.iterdir()) - before
    return copy


def test_two_conflicts_of_one_path_are_both_listed_and_both_resolved(
    alice: Svc, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = second_conflict(alice, tmp_path / "other", monkeypatch)
    assert kept.read_bytes() == MINE
    assert second.read_bytes() == THEIRS.replace(b"9000", b"3001")
    listed = json.loads(alice("conflicts", "--json").out)
    assert [(one["path"], one["kept_as"]) for one in listed] == [
        (str(FILE), name) for name in sorted((str(kept), str(second)))
    ]
    refused = alice("resolve", str(FILE), "--mine")
    assert refused.code == 2
    assert "2 conflicts" in refused.err
    assert f"svc resolve {min(str(kept), str(second))}" in refused.err
    assert alice("resolve", str(second), "--mine").code == 0
    assert FILE.read_bytes() == THEIRS.replace(b"9000", b"3001")
    assert open_conflicts(alice) == [str(FILE)]
    assert alice("resolve", str(FILE), "--theirs").code == 0  # one is left: the path is enough
    assert open_conflicts(alice) == []
    assert {MINE, THEIRS.replace(b"9000", b"9001")} <= set(trashed(tmp_path).values())


def test_of_two_conflicts_the_one_whose_copy_was_deleted_is_over(
    alice: Svc, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = second_conflict(alice, tmp_path / "other", monkeypatch)
    kept.unlink()
    assert alice("resolve", str(FILE), "--mine").code == 0
    assert FILE.read_bytes() == THEIRS.replace(b"9000", b"3001")
    assert not second.exists()
    assert open_conflicts(alice) == []


PICTURE = Path("logo.png")
FIRST, SECOND, THIRD = (bytes([0, 255, n]) * 70_000 for n in range(3))


@pytest.fixture
def pictures(alice: Svc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A linked folder in which a pull met their picture and their notes, and kept mine: path → the copy."""
    assert alice("repo", "create", "app").code == 0
    assert alice("repo", "init", f"{handle()}/app").code == 0
    PICTURE.write_bytes(FIRST)
    assert alice("push", "-m", "First").code == 0
    here, other = Path.cwd(), tmp_path / "other"
    assert alice("repo", "clone", f"{handle()}/app", str(other)).code == 0
    monkeypatch.chdir(other)
    PICTURE.write_bytes(SECOND)
    Path("notes.txt").write_bytes(b"theirs\n")
    assert alice("push", "-m", "Theirs").code == 0
    monkeypatch.chdir(here)
    PICTURE.write_bytes(THIRD)
    Path("notes.txt").write_bytes(b"mine\n")
    assert alice("pull", "--merge").code == 1
    (picture,), (notes,) = Path().glob("logo.sync-conflict-*.png"), Path().glob("notes.sync-conflict-*.txt")
    assert (PICTURE.read_bytes(), picture.read_bytes(), notes.read_bytes()) == (SECOND, THIRD, b"mine\n")
    return {str(PICTURE): picture, "notes.txt": notes}


def test_versions_without_common_text_are_listed(alice: Svc, pictures: dict[str, Path]) -> None:
    found = json.loads(alice("conflicts", "--json").out)
    assert found == [
        {"path": path, "kept_as": str(copy), "lines": "", "kept_lines": "", "by": None}
        for path, copy in pictures.items()
    ]
    assert f"your version of {PICTURE}, a conflict; svc resolve {PICTURE}" in alice("status").out


def test_bytes_want_a_whole_version(alice: Svc, pictures: dict[str, Path]) -> None:
    told = alice("resolve", str(PICTURE), "--tool", "true")
    assert told.code == 1
    assert f"{PICTURE} is not text; choose one version: svc resolve {PICTURE} --mine or --theirs" in told.err
    assert (PICTURE.read_bytes(), pictures[str(PICTURE)].read_bytes()) == (SECOND, THIRD)


def test_my_bytes_replace_theirs(alice: Svc, pictures: dict[str, Path], tmp_path: Path) -> None:
    assert alice("resolve", str(PICTURE), "--mine").code == 0
    assert (PICTURE.read_bytes(), pictures[str(PICTURE)].exists()) == (THIRD, False)
    kept = {one.name: one.read_bytes() for one in (tmp_path / "home" / "trash").rglob("*.png")}
    assert kept == {PICTURE.name: SECOND, pictures[str(PICTURE)].name: THIRD}
    assert alice("resolve", "notes.txt", "--theirs").code == 0
    assert Path("notes.txt").read_bytes() == b"theirs\n"
    assert open_conflicts(alice) == []
    assert json.loads(alice("status", "--json", "changed,new").out) == {"changed": [str(PICTURE)], "new": []}
    assert alice("push", "-m", "My picture").code == 0


def test_a_new_file_of_one_name_is_joined_by_hand(
    alice: Svc, pictures: dict[str, Path], tmp_path: Path
) -> None:
    told = at_terminal(editor(tmp_path, "text = b'both\\n'"), "resolve", "notes.txt")
    assert told.code == 0, told
    assert b"<<<<<<< svc conflict: the branch's version\ntheirs\n" in (tmp_path / "seen").read_bytes()
    assert Path("notes.txt").read_bytes() == b"both\n"
