"""A conflict that a command has announced stays open until it is resolved, whatever kind it is of: a file
that the branch deleted, a folder where the branch has a file, a file where the branch has a folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from localstore.folder import link
from localstore.folder.identity import prepare_link
from tests.svc.cmd.test_resolve import handle
from tests.svc.conftest import Answer, Svc

Files = dict[str, str | None]
"""Path → text; None: it is deleted. A path that ends with `/` is deleted with all below it."""
START: Files = {
    "gone.txt": "gone\n",
    "gone.bin": "\0gone",
    "lib/a.py": "a = 1\n",
    "page": "page\n",
    "both": "both\n",
}
KINDS: dict[str, tuple[Files, Files, dict[str, str]]] = {
    "gone": ({"gone.txt": None}, {"gone.txt": "mine\n"}, {"gone.txt": "mine\n"}),
    "gone bytes": ({"gone.bin": None}, {"gone.bin": "\0mine"}, {"gone.bin": "\0mine"}),
    "renamed": (
        {"gone.bin": None, "new.bin": "\0other"},
        {"gone.bin": "\0mine"},
        {"gone.bin": "\0mine"},
    ),
    "edit below": (
        {"lib/a.py": None, "lib": "a file\n"},
        {"lib/a.py": "a = 2\n"},
        {"lib/a.py": "a = 2\n"},
    ),
    "folder": ({"both": "theirs\n"}, {"both": None, "both/x.txt": "x\n"}, {"both": "x\n"}),
    "new folder": ({"n": "theirs\n"}, {"n/x.txt": "x\n"}, {"n": "x\n"}),
    "file": (
        {"page": None, "page/index": "theirs\n"},
        {"page": "mine\n"},
        {"page": "mine\n"},
    ),
    "new file": ({"n/x.txt": "theirs\n"}, {"n": "mine\n"}, {"n": "mine\n"}),
}
"""Kind → what the others do, what is done here, and path in conflict → what its copy has."""


def apply(files: Files) -> None:
    for path, text in files.items():
        if text is None:
            Path(path).unlink()
            if path.count("/") and not any(Path(path).parent.iterdir()):
                Path(path).parent.rmdir()
        else:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(text)


def copy_of(kept_as: str) -> str:
    """What a conflict copy has; of a folder, what its only file has."""
    kept = Path(kept_as)
    return kept.read_text() if kept.is_file() else next(kept.rglob("*.*")).read_text()


@pytest.fixture
def apart(alice: Svc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Files, Files], None]:
    """Makes two folders of one repository in which the two did different things; theirs is pushed."""

    def part(theirs: Files, mine: Files) -> None:
        assert alice("repo", "create", "app").code == 0
        assert alice("repo", "init", f"{handle()}/app").code == 0
        apply(START)
        assert alice("push", "-m", "First").code == 0
        here, other = Path.cwd(), tmp_path / "other"
        assert alice("repo", "clone", f"{handle()}/app", str(other)).code == 0
        monkeypatch.chdir(other)
        apply(theirs)
        assert alice("push", "-m", "Theirs").code == 0
        monkeypatch.chdir(here)
        apply(mine)

    return part


@pytest.mark.parametrize("kind", KINDS)
def test_a_pull_records_it(alice: Svc, apart: Callable[[Files, Files], None], kind: str) -> None:
    theirs, mine, expected = KINDS[kind]
    apart(theirs, mine)
    rehearsed = alice("pull", "--merge", "--dry-run", "--json", "conflicts")
    told = alice("pull", "--merge", "--json", "conflicts")
    assert told.code == 1, told
    [announced] = [json.loads(told.out)["conflicts"]]
    assert {one["path"]: copy_of(one["kept_as"]) for one in announced} == expected, told
    assert len(announced) == len(expected)
    assert [one["path"] for one in json.loads(rehearsed.out)["conflicts"]] == [*expected]
    listed = json.loads(alice("conflicts", "--json").out)
    assert [(one["path"], one["kept_as"]) for one in listed] == [
        (one["path"], one["kept_as"]) for one in announced
    ]
    refused = alice("push", "-m", "Mine")
    assert (refused.code, "svc resolve" in refused.err) == (1, True), refused


AFTER: dict[str, tuple[Files, Files]] = {
    "gone": ({"gone.txt": "mine\n"}, {}),
    "gone bytes": ({"gone.bin": "\0mine"}, {}),
    "renamed": ({"gone.bin": "\0mine"}, {}),
    "folder": ({"both/x.txt": "x\n"}, {"both": "theirs\n"}),
    "new folder": ({"n/x.txt": "x\n"}, {"n": "theirs\n"}),
    "file": ({"page": "mine\n"}, {"page/index": "theirs\n"}),
    "new file": ({"n": "mine\n"}, {"n/x.txt": "theirs\n"}),
}
"""Kind → what is at the paths after `--mine`, and after `--theirs`."""


def everything() -> Files:
    """The files of the folder that a push sends."""
    found = (path for path in Path().rglob("*") if path.is_file() and ".svc" not in path.parts)
    return {str(path): path.read_text() for path in found}


@pytest.mark.parametrize("how", ["mine", "theirs"])
@pytest.mark.parametrize("kind", AFTER)
def test_resolve_ends_it(
    alice: Svc,
    apart: Callable[[Files, Files], None],
    kind: str,
    how: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theirs, mine, expected = KINDS[kind]
    apart(theirs, mine)
    assert alice("pull", "--merge").code == 1
    [path] = expected
    told = alice("resolve", path, f"--{how}")
    assert told.code == 0, told
    chosen = AFTER[kind][how == "theirs"]
    now = everything()
    assert {name: text for name, text in now.items() if name in {*AFTER[kind][0], *AFTER[kind][1]}} == chosen
    assert not [name for name in now if "sync-conflict" in name]
    assert alice("conflicts").code == 0
    assert (f"Resolved {path}: it stays deleted" in told.err) == (how == "theirs" and not chosen)
    trashed = [one.read_text() for one in (tmp_path / "home" / "trash").rglob("*") if one.is_file()]
    given_up = AFTER[kind][how == "mine"]
    assert {*given_up.values()} <= {*trashed}
    assert alice("push", "-m", "Mine").code == 0
    monkeypatch.chdir(tmp_path / "other")
    assert alice("pull").code == 0
    assert everything() == now


def test_no_version_is_put_below_a_file(alice: Svc, apart: Callable[[Files, Files], None]) -> None:
    theirs, mine, _ = KINDS["edit below"]
    apart(theirs, mine)
    assert alice("pull", "--merge").code == 1
    told = alice("resolve", "lib/a.py", "--mine")
    assert (told.code, "lib is a file or a link, so there can be no lib/a.py; move it away" in told.err) == (
        1,
        True,
    )
    assert alice("conflicts").code == 1
    assert alice("resolve", "lib/a.py", "--theirs").code == 0
    assert alice("conflicts").code == 0
    assert Path("lib").read_text() == "a file\n"


def merge_apart(svc: Svc, theirs: Files, mine: Files) -> Answer:
    """Make two branches in which the two sides did different things, and merge theirs. Returns the answer of
    the merge, which has a conflict."""
    assert svc("repo", "create", "app").code == 0
    assert svc("repo", "init", f"{handle()}/app").code == 0
    apply(START)
    assert svc("push", "-m", "First").code == 0
    assert svc("repo", "branch", "side").code == 0
    assert svc("switch", "side").code == 0
    apply(theirs)
    assert svc("push", "-m", "Theirs").code == 0
    assert svc("switch", "main").code == 0
    apply(mine)
    assert svc("push", "-m", "Mine").code == 0
    told = svc("merge", "side")
    assert told.code == 1, told
    return told


@pytest.mark.parametrize(
    ("theirs", "mine", "words", "after"),
    [
        (
            {"n": "theirs\n"},
            {"n/x.txt": "x\n"},
            "you have a folder there; the file of side",
            {"n": "theirs\n"},
        ),
        (
            {"n/x.txt": "theirs\n"},
            {"n": "mine\n"},
            "side has a folder there; your file",
            {"n/x.txt": "theirs\n"},
        ),
    ],
    ids=["folder", "file"],
)
@pytest.mark.parametrize("how", ["mine", "theirs"])
def test_a_merge_asks_whose_it_is(
    alice: Svc, theirs: Files, mine: Files, words: str, after: Files, how: str
) -> None:
    told = merge_apart(alice, theirs, mine)
    assert words in told.err, told
    assert [one["path"] for one in json.loads(alice("conflicts", "--json").out)] == ["n"]
    refused = alice("merge", "--continue")
    assert (refused.code, "svc resolve n" in refused.err) == (1, True), refused
    assert alice("resolve", "n", f"--{how}").code == 0
    assert alice("conflicts").code == 0
    wanted = after if how == "theirs" else mine
    assert {path: text for path, text in everything().items() if path.split("/")[0] == "n"} == wanted
    assert alice("merge", "--continue").code == 0


OWN: Files = {"n/x.txt": "x\n", "n/sub/y.txt": "y\n", "n-beside.txt": "beside\n"}


@pytest.mark.parametrize("how", ["", "mine", "theirs"])
def test_an_abort_restores_everything(alice: Svc, how: str) -> None:
    merge_apart(alice, {"n": "theirs\n"}, OWN)
    if how:
        assert alice("resolve", "n", f"--{how}").code == 0
    told = alice("merge", "--abort")
    assert told.code == 0, told
    assert everything() == START | OWN
    status = json.loads(alice("status", "--json", "changed,new,removed").out)
    assert status == {"changed": [], "new": [], "removed": []}
    assert alice("conflicts").code == 0


@pytest.mark.parametrize(
    ("how", "after", "words"),
    [
        ("mine", {}, "Resolved n: it stays deleted"),
        ("theirs", {"n": "theirs\n"}, "Resolved n: it is the other version now"),
    ],
    ids=["mine", "theirs"],
)
@pytest.mark.parametrize("instead", ["", "a file of mine\n"], ids=["none", "file"])
def test_it_ends_with_no_folder(alice: Svc, how: str, after: Files, words: str, instead: str) -> None:
    """Each version stays whose it is where the folder is gone, as after a kill between two moves, or
    `rm -r`."""
    merge_apart(alice, {"n": "theirs\n"}, {"n/x.txt": "x\n"})
    shutil.rmtree("n")
    if instead:
        Path("n").write_text(instead)
    told = alice("resolve", "n", f"--{how}")
    assert told.code == 0, told
    if instead and how == "mine":
        after, words = {"n": instead}, "Resolved n: it is your version now"
    assert words in told.err
    assert {path: text for path, text in everything().items() if path[0] == "n"} == after
    assert alice("conflicts").code == 0


def test_a_switch_records_it(alice: Svc, apart: Callable[[Files, Files], None]) -> None:
    apart({}, {})
    assert alice("repo", "branch", "side").code == 0
    assert alice("switch", "side").code == 0
    apply({"page": None, "page/index": "theirs\n", "gone.txt": None})
    assert alice("push", "-m", "Theirs").code == 0
    assert alice("switch", "main").code == 0
    apply({"page": "mine\n", "gone.txt": "mine\n"})
    told = alice("switch", "side", "--merge")
    assert told.code == 1, told
    listed = json.loads(alice("conflicts", "--json").out)
    assert [one["path"] for one in listed] == ["page"], told
    kept = {one["path"]: copy_of(one["kept_as"]) for one in listed}
    assert (kept["page"], Path("gone.txt").read_text()) == ("mine\n", "mine\n")
    assert alice("push", "-m", "Mine").code == 1


def test_a_pull_says_what_it_merged_and_removed(
    alice: Svc, apart: Callable[[Files, Files], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was renamed here and edited there, and one that is gone."""
    lines = [f"line {number}\n" for number in range(20)]
    apart({}, {"long.txt": "".join(lines), "page": None})
    assert alice("push", "-m", "Long").code == 0
    here = Path.cwd()
    monkeypatch.chdir(tmp_path / "other")
    assert alice("pull").err.endswith(": long.txt, page (removed)\n")
    apply({"long.txt": "".join(["theirs\n", *lines[1:]]), "both": None})
    assert alice("push", "-m", "Theirs").code == 0
    monkeypatch.chdir(here)
    Path("long.txt").rename("renamed.txt")
    rehearsed = alice("pull", "--merge", "--dry-run")
    assert "Would change 2 files: both (removed), renamed.txt\n" in rehearsed.out, rehearsed
    told = alice("pull", "--merge", "--json", "changed,removed")
    assert json.loads(told.out) == {"changed": ["both", "renamed.txt"], "removed": ["both"]}
    assert Path("renamed.txt").read_text() == "".join(["theirs\n", *lines[1:]])


def test_a_pull_that_only_kept_a_copy_is_not_up_to_date(
    alice: Svc, apart: Callable[[Files, Files], None]
) -> None:
    theirs, mine, _ = KINDS["gone"]
    apart(theirs, mine)
    told = alice("pull", "--merge")
    assert (told.code, "Up to date" in told.err) == (1, False), told
    assert told.err.endswith(": gone.txt (removed)\n")


def test_a_clone_goes_on_beside_a_file_of_the_user(
    alice: Svc, apart: Callable[[Files, Files], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart({}, {})
    folder = tmp_path / "begun"
    folder.mkdir()
    prepare_link(folder)
    link.write_repo(folder, link.read_repo(Path.cwd()))
    (folder / "page").write_text("mine\n")
    told = alice("repo", "clone", f"{handle()}/app", str(folder))
    assert told.code == 1, told
    monkeypatch.chdir(folder)
    [conflict] = json.loads(alice("conflicts", "--json").out)
    assert (conflict["path"], copy_of(conflict["kept_as"])) == ("page", "mine\n")
    refused = alice("push", "-m", "Mine")
    assert (refused.code, "svc resolve page" in refused.err) == (1, True), refused
    assert alice("resolve", "page", "--mine").code == 0
    assert (Path("page").read_text(), alice("conflicts").code) == ("mine\n", 0)
    assert alice("push", "-m", "Mine").code == 0
