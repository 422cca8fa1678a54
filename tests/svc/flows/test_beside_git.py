"""A folder that git versions too: what git sees of svc, and what svc takes of what git tracks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.svc.conftest import Svc
from tests.svc.flows.test_folder import asked, git, sealed, write
from tests.svc.flows.test_large_files import made, pushed

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def full(alice: Svc) -> str:
    """The folder we are in is linked to this new repository, and a git repository."""
    name = made(alice, "app", "beside")
    git("init", "-q", "-b", "main")
    return name


def test_git_neither_lists_nor_takes_nor_cleans_the_link(alice: Svc, full: str) -> None:
    write("a.txt", "one\n")
    pushed(alice)
    assert git("status", "--porcelain", "--untracked-files=all") == "?? a.txt\n"
    git("add", "-A")
    assert git("ls-files") == "a.txt\n"
    git("clean", "-fdq")
    assert alice("status").code == 0
    assert sorted(sealed(alice)) == ["a.txt"]


def test_a_link_of_an_earlier_svc_gets_the_rule_with_the_next_push(alice: Svc, full: str) -> None:
    Path(".svc/.gitignore").unlink()
    write("a.txt", "one\n")
    pushed(alice)
    assert git("status", "--porcelain", "--untracked-files=all") == "?? a.txt\n"
    Path(".svc/.gitignore").write_text("# mine\n*\n")
    write("a.txt", "two\n")
    pushed(alice)
    assert Path(".svc/.gitignore").read_text() == "# mine\n*\n"


def test_a_link_that_git_versions_already_is_named_once(alice: Svc, full: str) -> None:
    write("a.txt", "one\n")
    git("add", "-f", "a.txt", ".svc/repo.json")
    told = alice("status")
    assert told.err.count("git versions .svc") == 1
    assert "git rm -r --cached .svc" in told.err
    assert "git versions .svc" not in alice("push", "-m", "one").err
    git("rm", "-rq", "--cached", ".svc")
    assert git("status", "--porcelain", "--untracked-files=all") == "A  a.txt\n"


def test_what_git_tracks_is_left_out_by_neither_gitignore_nor_the_defaults(alice: Svc, full: str) -> None:
    tracked = ["build/a.c", "build/in/b.c", "kept.log", "lib/dist/c.js", ".idea/d.xml", "sub/kept.log"]
    other = ["build/x.o", "build/in/y.o", "other.log", "node_modules/z.js", "sub/other.log"]
    write(".gitignore", "*.log\n")
    for path in (*tracked, *other):
        write(path, path)
    git("add", "-f", ".gitignore", *tracked)
    assert alice("status").err.count("git tracks") == 0
    assert json.loads(alice("status", "--json", "new").out)["new"] == sorted([".gitignore", *tracked])
    left_out = json.loads(alice("status", "--ignored", "--json", "left_out").out)["left_out"]
    assert {one["path"] for one in left_out} == {
        "build/x.o", "build/in/y.o", "other.log", "node_modules/", "sub/other.log",
    }  # fmt: skip
    pushed(alice)
    assert sorted(sealed(alice)) == sorted([".gitignore", *tracked])
    write("build/in/b.c", "edited\n")
    assert pushed(alice)["sent"] == ["build/in/b.c"]


def test_what_git_takes_up_later_is_sent_with_the_next_push(alice: Svc, full: str) -> None:
    write("a.txt", "one\n")
    write("build/a.c", "one\n")
    assert pushed(alice)["sent"] == ["a.txt"]
    git("add", "-f", "build/a.c")
    assert json.loads(alice("status", "--json", "new").out)["new"] == ["build/a.c"]
    git("rm", "-q", "--cached", "build/a.c")
    assert json.loads(alice("status", "--json", "new").out)["new"] == []


def test_svcignore_and_stignore_leave_out_what_git_tracks_and_it_is_named_once(alice: Svc, full: str) -> None:
    write(".svcignore", "*.key\n")
    write(".stignore", "*.pem\n")
    write("build/.svcignore", "secret\n")  # inside a folder that the defaults leave out
    for path in ("a.key", "b.pem", "build/secret", "build/a.c"):
        write(path, path)
    git("add", "-f", ".")
    told = alice("push", "-m", "one")
    assert (told.code, told.err.count("git tracks")) == (0, 3), told.err
    assert "git tracks a.key, and .svcignore:1 *.key leaves it out\n" in told.err
    assert "git tracks b.pem, and .stignore:1 *.pem leaves it out; to send it: add !/b.pem" in told.err
    assert "git tracks build/secret, and build/.svcignore:1 secret leaves it out\n" in told.err
    assert sorted(sealed(alice)) == [".stignore", ".svcignore", "build/.svcignore", "build/a.c"]
    write("build/a.c", "two\n")
    assert "git tracks" not in alice("push", "-m", "two").err
    write(".svcignore", "*.key\nnew.txt\n")
    write("new.txt", "x\n")
    git("add", "new.txt")
    assert "git tracks new.txt, and .svcignore:2 new.txt" in alice("status").err


def test_an_index_that_cannot_be_read_is_named_and_the_rules_hold(alice: Svc, full: str) -> None:
    write("a.txt", "one\n")
    write("build/a.c", "one\n")
    git("add", "-f", ".")
    index = Path(".git/index")
    index.write_bytes(index.read_bytes()[:-40])
    told = alice("push", "-m", "one")
    assert (told.code, told.err.count("warning: .git/index: its entries are damaged")) == (0, 1), told.err
    assert sorted(sealed(alice)) == ["a.txt"]


def test_no_program_of_the_repository_is_run(alice: Svc, full: str, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    for hook in ("fsmonitor-watchman", "post-index-change"):
        write(f".git/hooks/{hook}", f"#!/bin/sh\ntouch {ran}\n")
        Path(f".git/hooks/{hook}").chmod(0o755)
    write("a.txt", "one\n")
    git("add", "a.txt")
    ran.unlink(missing_ok=True)
    git("config", "core.fsmonitor", f"touch {ran}")
    for words in (["status"], ["status", "--ignored"], ["push", "-m", "one"], ["diff"], ["pull"]):
        assert alice(*words).code == 0
    assert not ran.exists()


# --- what git ignores for one person alone


@pytest.fixture
def private(alice: Svc, full: str, tmp_path: Path) -> str:
    """A folder with files that git ignores on this machine only."""
    everywhere = tmp_path / "ignore files" / "mine"
    write(str(everywhere), "global.env\n*.kept\n")
    git("config", "core.excludesFile", str(everywhere))
    write(".git/info/exclude", "# mine\nlocal.env\n/private/\n")
    write(".gitignore", "!a.kept\n")
    for path in ("a.txt", "a.kept", "local.env", "sub/global.env", "private/in/key", "private/tracked"):
        write(path, path)
    git("add", "-f", "private/tracked")
    listed = git("ls-files", "--others", "--exclude-standard") + git("ls-files")
    assert sorted(listed.split()) == [".gitignore", "a.kept", "a.txt", "private/tracked"]
    return full


OURS = ["local.env", "private/in/key", "sub/global.env"]


def test_nothing_that_git_ignores_for_one_person_is_sent_before_a_yes(alice: Svc, private: str) -> None:
    for _ in range(2):
        told = alice("push", "-m", "one")
        assert told.code == 2, told.err
        assert "git ignores local.env for you (.git/info/exclude:2 local.env)" in told.err
        assert "mine:1 global.env), and svc would send it" in told.err
        assert "add to .svcignore: /local.env, /private/, /sub/global.env" in told.err
        assert asked(alice, "/refs/branch/main")["head"] is None
    assert "git ignores for you alone: local.env, private/in/key, sub/global.env" in alice("status").err
    dry = alice("push", "--dry-run", "--json", "sent,skipped")
    assert sorted(json.loads(dry.out)["sent"]) == [".gitignore", "a.kept", "a.txt", "private/tracked"]
    assert sorted(one["path"] for one in json.loads(dry.out)["skipped"]) == OURS
    pushed = alice("push", "-m", "one", "--yes")
    assert (pushed.code, "git ignores local.env" in pushed.err) == (0, True), pushed.err
    assert set(OURS) <= sealed(alice).keys()
    write("local.env", "edited\n")
    assert alice("push", "-m", "two").code == 0


def test_git_ignored_writes_the_lines_that_keep_the_files_here(alice: Svc, private: str) -> None:
    listed = json.loads(alice("repo", "git-ignored", "--json").out)
    assert [one["path"] for one in listed] == OURS
    assert [one["line"] for one in listed] == ["/local.env", "/private/", "/sub/global.env"]
    write(".svcignore", "*.bin")  # without a newline at its end
    assert "Added 3 lines" in alice("repo", "git-ignored", "--write").err
    assert Path(".svcignore").read_text() == "*.bin\n/local.env\n/private/\n/sub/global.env\n"
    assert json.loads(alice("repo", "git-ignored", "--json").out) == []
    told = alice("push", "-m", "one")
    assert (told.code, "git tracks private/tracked" in told.err) == (0, True), told.err
    assert sorted(sealed(alice)) == [".gitignore", ".svcignore", "a.kept", "a.txt"]


def test_gits_own_file_of_a_person_counts_and_settings_may_be_included(
    alice: Svc, full: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write(str(tmp_path / "config/git/ignore"), "default.env\n")
    write("default.env", "x")
    write("other.env", "x")
    assert [one["path"] for one in json.loads(alice("repo", "git-ignored", "--json").out)] == ["default.env"]
    write(str(tmp_path / "config/git/config"), '[user]\n\tname = x ; y\n[include] path = "more"\n')
    write(str(tmp_path / "config/git/more"), f'[Core] excludesfile = "{tmp_path}/mi\\\\ne" # here\n')
    write(str(tmp_path / "mi\\ne"), "other.env\n")
    assert git("check-ignore", "other.env", "default.env") == "other.env\n"
    assert [one["path"] for one in json.loads(alice("repo", "git-ignored", "--json").out)] == ["other.env"]


# --- what Git LFS left behind


def test_pointers_of_lfs_are_named_before_and_with_the_push(alice: Svc, full: str) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 5242880\n"
    write("in/model.bin", pointer)
    write("like.txt", pointer + "and more\n")
    assert "LFS" not in alice("status").err  # no file says that this folder uses it
    write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    expected = "warning: in/model.bin is a pointer of Git LFS, not the file of 5.0 MiB"
    for words in (["status"], ["push", "--dry-run"], ["push", "-m", "one"]):
        told = alice(*words)
        assert (expected in told.err, told.err.count("LFS")) == (True, 1), told.err
    write("a.txt", "x")
    assert "LFS" not in alice("push", "-m", "two").err
