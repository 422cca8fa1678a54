"""Nothing stays behind in silence: what rules drop, what git tracks of it, names that others cannot hold."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.campaign.conftest import Place


def git(place: Place, *words: str) -> None:
    subprocess.run(["git", *words], cwd=place.ann.folder, check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_files_that_git_tracks_and_rules_drop_are_named_once_with_the_line_that_keeps_them(
    place: Place,
) -> None:
    git(place, "init", "-q")
    place.write(place.ann, ".stignore", "build/\ndist/\ntarget/\n")
    forced = ["build/x", "docs/a*b/dist/[1].txt", "lib/target/ keep"]
    for path in [*forced, "build/not-git", "src/a.py"]:
        place.write(place.ann, path, f"{path}\n")
    git(place, "add", "-f", "src", *forced)
    pushed = place.ann.ok("push", "-m", "first")
    lines = []
    for path in forced:
        (line,) = [one for one in pushed.err.splitlines() if f"git tracks {path}," in one]
        assert ".stignore:" in line
        lines.append(line.partition("add ")[2].removesuffix(" to .svcignore"))
    assert "not-git" not in pushed.err
    assert "git tracks" not in place.ann.ok("status").err
    place.write(place.ann, ".svcignore", "".join(f"{line}\n" for line in lines))
    place.ann.ok("push", "-m", "kept")
    bob = place.machine("bob")
    assert {path for path in bob.files() if path not in (".svcignore", ".stignore")} == {*forced, "src/a.py"}


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_status_names_them_before_a_push(place: Place) -> None:
    git(place, "init", "-q")
    place.write(place.ann, ".stignore", "build/\n")
    place.write(place.ann, "build/x", "x\n")
    git(place, "add", "-f", "build/x")
    assert "git tracks build/x, and .stignore:1 build/ leaves it out" in place.ann.ok("status").err
    assert "git tracks" not in place.ann.ok("status").err


def test_everything_that_rules_drop_is_listed_with_its_rule(place: Place) -> None:
    for path, data in (
        (".gitignore", "*.log\n/secret/\n"), ("a.log", "x"), ("secret/b", "x"), ("node_modules/m/i.js", "x"),
        ("sub/.svcignore", "local.txt\n"), ("sub/local.txt", "x"), ("kept.txt", "x\n"),
    ):  # fmt: skip
        place.write(place.ann, path, data)
    expected = {
        "a.log": ".gitignore:1 *.log",
        "secret/": ".gitignore:2 /secret/",
        "node_modules/": "built-in node_modules/",
        "sub/local.txt": "sub/.svcignore:1 local.txt",
    }
    listed = place.ann.ok("status", "--ignored", "--json", "left_out").json()["left_out"]
    assert {one["path"]: one["rule"] for one in listed} == expected
    rows = place.ann.ok("status", "--ignored").out
    assert "ignored\ta.log\t.gitignore:1 *.log" in rows
    dry = place.ann.ok("push", "--dry-run")
    assert all(f"ignored {path}: {rule}" in dry.err for path, rule in expected.items())
    assert "ignored\t" not in place.ann.ok("status").out


def test_names_that_others_cannot_hold_are_warned_of_once(place: Place) -> None:
    odd = ["CON", "dot.", "Case.txt", "case.txt", "e\u0301.txt", "Dir/a", "dir/b", "q?.txt"]
    for path in [*odd, "plain.txt"]:
        place.write(place.ann, path, f"{path}\n")
    first = place.ann.ok("status").err
    for name in ("CON", "dot.", "case.txt", "e\u0301.txt", "dir/b", "q?.txt"):
        assert f"warning: {name}: " in first
    assert "plain.txt" not in first
    assert "warning" not in place.ann.ok("push", "-m", "first").err
    place.write(place.ann, "PLAIN.TXT", "x\n")
    pushed = place.ann.ok("push", "-m", "second").err
    assert "warning: PLAIN.TXT: differs from 'plain.txt'" in pushed
    assert "CON" not in pushed
