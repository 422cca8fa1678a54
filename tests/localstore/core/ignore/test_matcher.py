from __future__ import annotations

import pytest

from localstore.core.errors import TooLarge
from localstore.core.ignore.matcher import ALWAYS, BUILT_IN, DEFAULTS, Reason, explain, root, scope_of
from localstore.core.ignore.rules import Rules
from localstore.core.model.limits import IGNORE_FILE_BYTES
from localstore.core.paths import TEMPORARY
from localstore.folder.writer import temp_name
from scripts.fuzz.ignore import campaign


def test_agrees_with_git() -> None:
    assert campaign(seed=20, cases=400) == []


def test_defaults_are_those_of_the_specification() -> None:
    assert len(DEFAULTS) == 31
    assert (DEFAULTS[0], DEFAULTS[-1]) == (".DS_Store", ".oxen/")
    scope = root()
    for pattern in DEFAULTS:
        name = pattern.replace("*", "x").rstrip("/")
        assert scope.is_ignored(name, is_dir=True), pattern
        is_metadata = name in (".git", ".svc", ".oxen")
        assert scope.is_ignored(name, is_dir=False) is (is_metadata or not pattern.endswith("/")), pattern


def test_highest_source_with_a_verdict_decides() -> None:
    scope = root({".svcignore": "!a.log\n", ".stignore": "a.log\nb.log\n", ".gitignore": "!b.log\nc.log\n"})
    assert not scope.is_ignored("a.log", is_dir=False)
    assert scope.is_ignored("b.log", is_dir=False)
    assert scope.is_ignored("c.log", is_dir=False)
    assert not scope.is_ignored("d.log", is_dir=False)


def test_last_line_of_a_file_wins_and_deeper_files_go_first() -> None:
    scope = root({".gitignore": "*.txt\n!keep.txt\n"})
    assert not scope.is_ignored("keep.txt", is_dir=False)
    inner = scope.enter("sub", {".gitignore": "keep.txt\n!other.txt\n"})
    assert inner.is_ignored("keep.txt", is_dir=False)
    assert not inner.is_ignored("other.txt", is_dir=False)


def test_higher_source_brings_back_what_a_lower_one_prunes() -> None:
    plain = root({".gitignore": "!node_modules/keep.js\n"})
    assert plain.prune("dist")
    assert not plain.prune("node_modules")
    raised = root({".svcignore": "!/node_modules/keep.js\n"})
    assert raised.prune("dist")
    inner = raised.enter("node_modules")
    assert not inner.is_ignored("keep.js", is_dir=False)
    assert inner.is_ignored("drop.js", is_dir=False)


def test_a_source_does_not_bring_back_below_its_own_ignored_folder() -> None:
    scope = root({".gitignore": "out/\n!out/keep\n"})
    assert scope.prune("out")
    assert scope.enter("out").is_ignored("keep", is_dir=False)


def test_reincluded_folder_holds_for_what_is_below() -> None:
    inner = root({".svcignore": "!dist/\n"}).enter("dist").enter("js")
    assert not inner.is_ignored("app.js", is_dir=False)
    assert not inner.is_ignored("x.pyc", is_dir=False)


def test_ignore_files_of_an_ignored_folder_have_no_say() -> None:
    inner = root({".svcignore": "!x\n"}).enter("dist", {".svcignore": "!*\n"})
    assert inner.is_ignored("a", is_dir=False)
    assert not inner.is_ignored("x", is_dir=False)


@pytest.mark.parametrize("name", [".git", ".svc", ".oxen", ".GIT", ".Svc", ".oXeN"])
@pytest.mark.parametrize("is_dir", [True, False])
def test_metadata_never_comes_back(name: str, is_dir: bool) -> None:
    scope = root({".svcignore": "!*\n!.git/\n!.svc/\n!.oxen/\n!.*\n"}).enter("deep")
    assert scope.is_ignored(name, is_dir)
    assert scope.prune(name)
    assert scope.enter(name, {".svcignore": "!config\n"}).is_ignored("config", is_dir=False)
    assert scope.enter(name).enter("hooks").prune("x")
    assert scope.explain(name, is_dir) == Reason(True, ALWAYS, "", 1, name.lower(), f"deep/{name}")


def test_what_svc_writes_before_a_rename_never_comes_back() -> None:
    scope = root({".svcignore": "!*\n!*.tmp\n!.svc-*\n!.svc-0123456789abcdef.tmp\n"}).enter("deep")
    assert scope.is_ignored(".svc-0123456789abcdef.tmp", is_dir=False)
    assert TEMPORARY.fullmatch(temp_name("deep/a.txt").rpartition("/")[2])
    for name in (".svc-0123456789abcdef.tmp.txt", ".svc-notes.tmp", "x.svc-0123456789abcdef.tmp"):
        assert not scope.is_ignored(name, is_dir=False)


def test_stignore_tolerates_syncthing() -> None:
    scope = root(
        {".stignore": "// a comment\n(?i)one\n(?d)(?i)two\n!(?d)two.keep\n(?i)!three\n#include other\n"}
    )
    assert scope.is_ignored("one", is_dir=False)
    assert scope.is_ignored("two", is_dir=False)
    assert not scope.is_ignored("three", is_dir=False)
    assert not scope.is_ignored("other", is_dir=False)
    assert not root({".gitignore": "(?d)one\n"}).is_ignored("one", is_dir=False)


def test_patterns_meet_bytes_as_in_git() -> None:
    scope = root({".gitignore": "?.c\nk??.c\n"})
    assert not scope.is_ignored("é.c", is_dir=False)
    assert scope.is_ignored("ké.c", is_dir=False)


def test_explains_itself() -> None:
    files = {"": {".gitignore": "# logs\n*.log\n!keep.log\n"}, "sub": {".svcignore": "/x\n"}}

    def read(folder: str) -> dict[str, str]:
        return files.get(folder, {})

    assert explain("sub/a.log", False, read) == Reason(True, ".gitignore", "", 2, "*.log", "sub/a.log")
    assert explain("keep.log", False, read) == Reason(False, ".gitignore", "", 3, "!keep.log", "keep.log")
    assert explain("sub/x/y", False, read) == Reason(True, ".svcignore", "sub", 1, "/x", "sub/x")
    assert explain("dist/y", False, read) == Reason(True, BUILT_IN, "", 18, "dist/", "dist")
    assert explain("plain.c", False, read) is None
    assert scope_of("sub", read).path == "sub"


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("*a" * 60 + "*b", "a" * 250),
        ("?*" * 80 + "b", "a" * 250),
        ("[a-z]*" * 60 + "!", "a" * 250),
        ("*" * 5000 + "b", "a" * 250),
    ],
)
def test_hostile_names_end_quickly(pattern: str, name: str) -> None:
    assert not root({".gitignore": pattern}).is_ignored(name, is_dir=False)


@pytest.mark.parametrize(
    "pattern",
    ["**/a/" * 30 + "b", "**/*a*/" * 20 + "b", "/**/a*a*a*" * 8 + "/b", "x**/" + "a/**/" * 30 + "b"],
)
def test_hostile_paths_end_quickly(pattern: str) -> None:
    scope = root({".gitignore": pattern + "[c]"})
    for _ in range(60):
        scope = scope.enter("aaaaaaaaaaaaaa")
    assert not scope.is_ignored("c", is_dir=False)


def test_runs_of_double_stars_are_one() -> None:
    scope = root({".gitignore": "x/" + "**/" * 50_000 + "a"}).enter("x").enter("y")
    assert scope.is_ignored("a", is_dir=False)
    assert not scope.is_ignored("b", is_dir=False)


def test_oversized_file_is_refused_by_name() -> None:
    with pytest.raises(TooLarge, match=r"sub/\.gitignore is larger"):
        Rules.parse("x" * (IGNORE_FILE_BYTES + 1), ".gitignore", "sub")


def test_pattern_longer_than_any_path_matches_nothing() -> None:
    assert not root({".gitignore": "?" * 2000}).is_ignored("a" * 2000, is_dir=False)
