from __future__ import annotations

import os
import tempfile
import unicodedata
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from localstore.core import paths
from localstore.core.errors import Invalid, PathInvalid
from localstore.core.model.limits import PATH_BYTES, PATH_DEPTH, PATH_SEGMENT_BYTES

WHEN = datetime(2026, 3, 4, 23, 5, 6, tzinfo=timezone(timedelta(hours=2)))
KEY = "Ab-_123xyz"

pieces = st.sampled_from(
    [
        ".",
        "..",
        "/",
        "\\",
        ":",
        "~1",
        "git",
        ".git",
        ".SVC",
        "a",
        "é",
        "\u200c",
        "\u202e",
        " ",
        "\0",
        "CON",
        "．",
    ]
)
hostile = st.lists(pieces | st.characters(), max_size=12).map("".join)


def accepted(path: str) -> bool:
    try:
        return paths.check(path) == path
    except PathInvalid:
        return False


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "empty"),
        ("/etc/passwd", "absolute"),
        ("a/../b", "segment '..'"),
        ("./a", "segment '.'"),
        ("a//b", "empty segment"),
        ("a/", "empty segment"),
        ("a\0b", "NUL"),
        ("a\\b", "backslash"),
        ("a\nb", "control"),
        ("a\x9bb", "control"),
        ("a\u2028b", "control"),
        ("a\u202eb", "direction"),
        ("a\ud800", "not valid Unicode"),
        ("é" * 128, "segment is longer"),
        ("/".join(["a" * 200] * 6), "longer than 1024"),
        ("/".join("a" * (PATH_DEPTH + 1)), "deeper"),
        (".. ", "read as '..'"),
        (".\u200c.", "read as '..'"),
        ("\u2025/x", "read as '..'"),
    ],
)
def test_check_names_the_reason(path: str, reason: str) -> None:
    with pytest.raises(PathInvalid, match=reason.replace(".", r"\.")):
        paths.check(path)


@pytest.mark.parametrize(
    "name",
    [
        ".git",
        ".GIT",
        ".Git",
        "git~1",
        "GIT~1",
        "svc~2",
        ".svc",
        ".SVC",
        ".oxen",
        ".ｇｉｔ",
        "．git",
        ".g\u200cit",
        *(".git\u200d", "\ufeff.git", ".gi\u00adt", ".git.", ".git ", ".git. .", ".git::$INDEX_ALLOCATION"),
        *(".git:x", ".ſvc", ".gıt", ".g\ufe0fit", ".git\u200c.", "git~1.", "g\u200cit~1", ".Ⓖit"),
    ],
)
def test_lookalikes_of_metadata_are_refused(name: str) -> None:
    for path in (name, f"{name}/config", f"a/b/{name}", f"a/{name}/x"):
        with pytest.raises(PathInvalid, match="metadata folder"):
            paths.check(path)


@pytest.mark.parametrize(
    "path",
    [
        "a",
        ".gitignore",
        ".svcignore",
        ".svc.yaml",
        "git",
        "svc/x",
        "a.git",
        ".github/x",
        "git~",
        "...",
        "CON",
        "a:b",
        "a. ",
        "e\u0301",
        "é",
        "日本/語",
        "👩\u200d👧.png",
        " a",
        "-rf",
        "~",
        "$HOME",
        "a b",
        ".git-x",
        "a" * 255,
    ],
)
def test_ordinary_and_merely_unportable_paths_are_accepted(path: str) -> None:
    assert paths.check(path) == path


@given(hostile)
@example("a/.. /b")
@settings(max_examples=400, deadline=None)
def test_accepted_paths_stay_inside_the_folder(path: str) -> None:
    if not accepted(path):
        return
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        target = Path(os.path.normpath(top / path))
        assert target != top
        assert top in target.parents
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b"x")
        found = [file.relative_to(top).as_posix() for file in top.rglob("*") if file.is_file()]
        assert found == [path]
        assert not {".git", ".svc", ".oxen"} & {part.lower() for part in path.split("/")}


def test_parents_and_inside() -> None:
    assert paths.parents("a/b/c") == ["a", "a/b"]
    assert paths.parents("a") == []
    assert paths.is_inside("a/b", "a")
    assert paths.is_inside("a", "a")
    assert paths.is_inside("a", "")
    assert not paths.is_inside("ab", "a")


@pytest.mark.parametrize("same", [("A/b", "a/B"), ("é", "e\u0301"), ("ÉA", "e\u0301a"), ("ß", "SS")])
def test_case_key_joins_what_some_disks_join(same: tuple[str, str]) -> None:
    assert paths.case_key(same[0]) == paths.case_key(same[1])


def test_case_key_keeps_the_rest_apart() -> None:
    assert paths.case_key("a/b") != paths.case_key("a_b")
    assert paths.case_key("e") != paths.case_key("é")


@pytest.mark.parametrize(
    "path",
    ["CON", "a/nul.txt", "com1", "LPT9.x.y", "a.", "a ", "a./b", "a:b", "x?", "e\u0301", "con .txt", "COM²"],
)
def test_portability_warns(path: str) -> None:
    assert len(paths.portability(path)) == 1


def test_portability_is_silent_on_common_names() -> None:
    assert paths.portability("src/console.py") == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/b/pic.png", "a/b/pic.sync-conflict-20260304-210506-Ab-_123.png"),
        ("a.tar.gz", "a.tar.sync-conflict-20260304-210506-Ab-_123.gz"),
        ("Makefile", "Makefile.sync-conflict-20260304-210506-Ab-_123"),
        ("a/.bashrc", "a/.bashrc.sync-conflict-20260304-210506-Ab-_123"),
        (".x.conf", ".x.sync-conflict-20260304-210506-Ab-_123.conf"),
        ("a.", "a..sync-conflict-20260304-210506-Ab-_123"),
    ],
)
def test_conflict_name(path: str, expected: str) -> None:
    assert paths.conflict_name(path, WHEN, KEY) == expected


@given(
    st.lists(st.text(st.sampled_from("aé日.💥 "), min_size=1, max_size=255), min_size=1, max_size=12).map(
        "/".join
    ),
)
@example("é" * 127)
@example("x." + "e" * 253)
@example("/".join(["d" * 255] * 3 + ["e" * 250, "f" * 3]))
@example("/".join(["d" * 255] * 4)[: PATH_BYTES - 2] + "/x")
@settings(max_examples=200, deadline=None)
def test_conflict_names_are_valid_at_any_length(path: str) -> None:
    if not accepted(path):
        return
    found = paths.conflict_name(path, WHEN, KEY)
    assert paths.check(found) == found
    assert ".sync-conflict-20260304-210506-Ab-_123" in found
    assert all(len(part.encode()) <= PATH_SEGMENT_BYTES for part in found.split("/"))


def test_cut_conflict_names_stay_distinct() -> None:
    first, second = "a" * 250 + "1.txt", "a" * 250 + "2.txt"
    assert paths.conflict_name(first, WHEN, KEY) != paths.conflict_name(second, WHEN, KEY)


def test_conflict_name_needs_a_zone_and_a_key() -> None:
    with pytest.raises(ValueError, match="time zone"):
        paths.conflict_name("a", datetime(2026, 1, 1), KEY)
    for key in ("short", "../../../x", "é" * 9):
        with pytest.raises(Invalid):
            paths.conflict_name("a", datetime(2026, 1, 1, tzinfo=UTC), key)


@given(st.text())
def test_terminal_safe_leaves_nothing_that_acts(text: str) -> None:
    shown = paths.terminal_safe(text)
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert paths.terminal_safe(shown) == shown


def test_terminal_safe_examples() -> None:
    assert paths.terminal_safe("\x1b[31mred\u202e") == "\\x1b[31mred\\u202e"
    assert paths.terminal_safe("a\nb", keep=paths.PROSE) == "a\nb"
    assert paths.terminal_safe("日本 é") == "日本 é"
