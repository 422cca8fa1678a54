"""Looking at history and going back in it: show, log, diff, restore, revert, switch."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.seal_ids import shortest_id
from tests.svc.conftest import Answer, Svc


class Both:
    """The same history in a linked folder and in a git repository beside it."""

    def __init__(self, svc: Svc, here: Path, git: Path) -> None:
        self.svc, self.here, self.repository = svc, here, git
        self.seals: list[str] = []
        git.mkdir()
        self.git("init", "-q", "-b", "main")
        repo = f"{os.environ['TEST_HANDLE']}/app"
        assert svc("repo", "create", "app").code == 0
        assert svc("repo", "init", repo).code == 0

    def git(self, *words: str) -> str:
        settings = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.quotepath=off")
        done = subprocess.run(
            ["git", *settings, *words], cwd=self.repository, capture_output=True, text=True, check=True
        )
        return done.stdout

    def write(self, files: dict[str, str | None]) -> None:
        """None removes the file."""
        for path, text in files.items():
            for root in (self.here, self.repository):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                if text is None:
                    (root / path).unlink()
                else:
                    (root / path).write_text(text)

    def commit(self, message: str, files: dict[str, str | None]) -> str:
        self.write(files)
        told = self.svc("push", "-m", message)
        assert told.code == 0, told
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        self.seals.append(told.out.strip())
        return self.seals[-1]

    def files(self) -> dict[str, str]:
        return {
            path.relative_to(self.here).as_posix(): path.read_text()
            for path in sorted(self.here.rglob("*"))
            if path.is_file() and ".svc" not in path.parts
        }


LONG = "".join(f"line {number} of the file\n" for number in range(1, 41))


@pytest.fixture
def both(alice: Svc, tmp_path: Path) -> Both:
    found = Both(alice, tmp_path / "work", tmp_path / "git")
    found.commit("One", {"a.txt": LONG, "src/b.py": "b = 1\n", "src/c.py": "c = 1\n"})
    found.commit("Two\n\nWith a body", {"a.txt": LONG.replace("line 3 ", "LINE 3 ")})
    moved = LONG.replace("line 3 ", "LINE 3 ").replace("line 20 ", "LINE 20 ")
    found.commit("Three", {"a.txt": None, "docs/a.txt": moved, "src/b.py": "b = 2\n"})
    found.commit("Four", {"docs/a.txt": moved.replace("line 30 ", "LINE 30 "), "src/c.py": None})
    return found


def messages(told: Answer) -> list[str]:
    assert told.code == 0, told
    return [one.partition("\n")[0] for one in json.loads(told.out)]


def test_a_seal_is_named_by_branch_tag_id_and_four_characters_of_it(both: Both) -> None:
    svc, (one, two, *_) = both.svc, both.seals
    short = shortest_id(one, both.seals)
    assert svc("repo", "tag", "create", "v1", "--from", short).code == 0
    assert json.loads(svc("repo", "tag", "list", "--json", "head").out) == [{"head": one}]
    for name in ("v1", one, one[:12], short):
        assert messages(svc("log", name, "--jq", "[.[].message]")) == ["One"]
        assert json.loads(svc("show", name, "--json", "id").out) == {"id": one}
        assert svc("blame", "a.txt", "--ref", name).code == 0
        assert svc("diff", f"{name}..{two[:8]}", "--name-only").out == "a.txt\n"
    assert svc("repo", "branch", "old", "--from", two[:6]).code == 0
    assert svc("repo", "branch", "older", "--from", "v1").code == 0
    heads = json.loads(svc("repo", "branch", "--jq", "map({(.name): .head}) | add").out)
    assert (heads["old"], heads["older"]) == (two, one)
    for name in ("deadbeef", one[:3], "nothing"):
        told = svc("show", name)
        assert told.code == 1
        assert f"no branch, tag or seal {name}" in told.err


def test_an_ambiguous_short_id_lists_the_candidates(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made ambiguous by the folder's own last seal, which is looked at beside the server's."""
    from svc.flows.place import refs

    seal = both.seals[0]
    short = shortest_id(seal, both.seals)
    end = len(short)
    other = short + ("0" if seal[end] != "0" else "1") + seal[end + 1 :]
    monkeypatch.setattr(refs, "last_seal", lambda _: other)
    told = both.svc("show", short)
    assert told.code == 2
    assert f"2 seals begin with {short}" in told.err
    assert seal[:16] in told.err
    assert other[:16] in told.err


def test_log_names_paths_folders_and_patterns_as_git_does(both: Both) -> None:
    os.chdir(both.here / "src")
    for words, paths in (
        (["."], ["src"]),
        (["b.py"], ["src/b.py"]),
        (["../docs"], ["docs"]),
        ([".", "../docs/a.txt"], ["src", "docs/a.txt"]),
        ([".."], ["."]),
    ):
        expected = both.git("log", "--format=%s", "--", *paths).splitlines()
        assert messages(both.svc("log", *words, "--jq", "[.[].message]")) == expected, words
    told = both.svc("log", "*.py", "--jq", "[.[].message]")
    assert messages(told) == ["Three", "One"], "a pattern names files of the newest seal"
    assert len(messages(both.svc("log", "..", "-n", "2", "--jq", "[.[].message]"))) == 2


def test_log_shows_patches_and_counts_as_git_does(both: Both) -> None:
    svc = both.svc
    told = svc("log", "--oneline", "-n", "2")
    assert told.out == f"{both.seals[3][:12]} Four\n{both.seals[2][:12]} Three\n"
    told = svc("log", "--stat")
    assert " 2 files changed, 2 insertions(+), 2 deletions(-)\n" in told.out
    assert "rename a.txt → docs/a.txt (97%)" in told.out
    assert "    With a body\n" in told.out
    told = svc("log", "-p", "-n", "1", both.seals[1][:8])
    patch = both.git("show", "--format=", "--no-ext-diff", "HEAD~2")
    body = patch[patch.index("--- a/") :]
    assert body in told.out
    found = json.loads(svc("log", "-p", "-n", "1", "--json", "message,files").out)
    assert [one["path"] for one in found[0]["files"]] == ["docs/a.txt", "src/c.py"]
    assert json.loads(svc("log", "-n", "1", "--json", "files").out) == [{"files": found[0]["files"]}]
    assert svc("log", "-n", "1", "-p", "--template", "{{files[0].path}}").out == "docs/a.txt\n"


def test_log_follows_a_file_through_its_names(both: Both) -> None:
    expected = both.git("log", "--follow", "--format=%s", "--", "docs/a.txt").splitlines()
    assert expected == ["Four", "Three", "Two", "One"]
    told = both.svc("log", "--follow", "docs/a.txt", "--jq", "[.[].message]")
    assert messages(told) == expected
    assert messages(both.svc("log", "docs/a.txt", "--jq", "[.[].message]")) == ["Four", "Three"]
    assert both.svc("log", "--follow", "docs", "src").code == 2


def test_blame_goes_through_a_rename_with_changes_as_git_does(both: Both) -> None:
    ids = dict(zip(both.git("log", "--reverse", "--format=%H").split(), both.seals, strict=True))
    lines = both.git("blame", "--porcelain", "docs/a.txt").splitlines()
    expected = [ids[line.split()[0]] for line in lines if line.split() and line.split()[0] in ids]
    told = both.svc("blame", "docs/a.txt", "--jq", ".[].seal_id")
    assert told.out.split() == expected
    assert len(set(expected)) == 4


def test_show_says_who_when_on_what_device_and_whether_it_verifies(both: Both) -> None:
    told = both.svc("show", both.seals[2])
    assert told.code == 0
    for line in (
        f"seal {both.seals[2]}\n",
        f"Author: {os.environ['TEST_HANDLE']}\n",
        "Verified: yes",
        "    Three\n",
        "similarity index 97%\nrename from a.txt\nrename to docs/a.txt\n",
    ):
        assert line in told.out
    found = json.loads(both.svc("show", "--json", "verified,device,message,parents").out)
    assert found["verified"] is True
    assert found["parents"] == [both.seals[2]]
    assert both.svc("show", both.seals[0], "--stat").out.endswith(" 3 files changed, 42 insertions(+)\n"), (
        "a first seal brings all of its files"
    )
    assert both.svc("show", f"{both.seals[0][:8]}:src/c.py").out == "c = 1\n"


def test_diff_of_two_seals_and_of_the_folder_counts_as_git_does(both: Both) -> None:
    svc, seals = both.svc, both.seals
    both.write(
        {"docs/a.txt": None, "moved.txt": both.files()["docs/a.txt"].replace("LINE 30", "x"), "n": "n\n"}
    )
    both.git("add", "-A")
    for words, git in (
        ([f"{seals[0][:6]}..{seals[3][:6]}"], ["HEAD~3", "HEAD"]),
        ([f"{seals[3]}..{seals[0]}"], ["HEAD", "HEAD~3"]),
        ([f"{seals[1]}..{seals[2]}", "src"], ["HEAD~2", "HEAD~1", "--", "src"]),
        ([], ["--cached"]),
        ([seals[0][:7]], ["--cached", "HEAD~3"]),
    ):
        names = both.git("diff", "-M", "--name-only", *git)
        assert sorted(svc("diff", *words, "--name-only").out.split()) == sorted(names.split()), words
        counted = both.git("diff", "-M", "--shortstat", *git)
        assert svc("diff", *words, "--stat").out.splitlines()[-1] == counted.rstrip("\n"), words
    renamed = json.loads(svc("diff", "--jq", '[.[] | select(.status == "renamed")]').out)
    assert [(one["old_path"], one["path"]) for one in renamed] == [("docs/a.txt", "moved.txt")]
    assert svc("diff", "--stat", "--name-only").code == 2
    assert svc("diff", "nothing-like-it").code == 1


def test_restore_takes_folders_patterns_and_whole_old_versions(both: Both) -> None:
    svc = both.svc
    four = both.files()
    (both.here / "src/b.py").write_text("edited\n")
    (both.here / "docs/a.txt").write_text("edited\n")
    (both.here / "new.txt").write_text("mine\n")
    assert svc("restore", "*.py").code == 0
    assert (both.here / "src/b.py").read_text() == "b = 2\n"
    assert svc("restore", ".").code == 0
    assert both.files() == {**four, "new.txt": "mine\n"}
    told = svc("restore", "--from", both.seals[0][:6], ".")
    assert told.code == 2, "files would go, and nobody can be asked"
    assert "docs/a.txt" in told.err
    assert "--yes" in told.err
    assert both.files() == {**four, "new.txt": "mine\n"}
    told = svc("restore", "--from", both.seals[0][:6], ".", "--yes")
    assert told.code == 0, told
    assert "new.txt" in told.err
    both.git("checkout", "-q", "HEAD~3")
    expected = {
        path.relative_to(both.repository).as_posix(): path.read_text()
        for path in sorted(both.repository.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }
    assert both.files() == {**expected, "new.txt": "mine\n"}
    assert not (both.here / "docs").exists()
    trashed = (Path(os.environ["SVC_HOME"]) / "trash").rglob("docs/a.txt")  # one of each restore
    assert any("LINE 30" in path.read_text() for path in trashed)
    (both.here / "new.txt").unlink()
    assert svc("push", "-m", "Back to one").code == 0
    tree = svc("diff", f"{both.seals[0]}..main", "--name-only")
    assert tree.out == ""


def test_restore_refuses_before_anything_when_something_is_in_the_way(both: Both) -> None:
    (both.here / "a.txt").mkdir()
    (both.here / "a.txt" / "mine").write_text("mine\n")
    before = both.files()
    told = both.svc("restore", "--from", both.seals[0], ".", "--yes")
    assert told.code == 1
    assert "a.txt/mine" in told.err
    assert both.files() == before


def test_revert_makes_the_inverse_change_as_git_does(both: Both) -> None:
    told = both.svc("revert", both.seals[1][:8])
    assert told.code == 1, "the file was moved since"
    assert "a.txt" in told.err
    text = LONG.replace("line 9 ", "LINE 9 ")
    five = both.commit("Five", {"src/b.py": "b = 2\nd = 4\n", "docs/a.txt": text})
    both.commit("Six", {"docs/a.txt": text.replace("line 35 ", "LINE 35 ")})
    told = both.svc("revert", five[:8])
    assert told.code == 0, told
    assert "svc push -m 'Revert \"Five\"'" in told.err
    both.git("revert", "--no-edit", "HEAD~1")
    assert both.files() == {
        path: (both.repository / path).read_text() for path in both.git("ls-files").splitlines()
    }
    assert both.svc("push", "-m", 'Revert "Five"').code == 0
    assert both.svc("revert", five[:8]).out.strip() == five, "nothing is left of it"


def test_a_revert_that_conflicts_names_the_files_and_changes_nothing(both: Both) -> None:
    three = both.commit("Five", {"src/b.py": "b = 3\n", "docs/a.txt": LONG})
    both.commit("Six", {"src/b.py": "b = 4\n"})
    before = both.files()
    told = both.svc("revert", three)
    assert told.code == 1
    assert ("src/b.py" in told.err, "docs/a.txt" in told.err) == (True, False)
    assert both.files() == before


def test_a_revert_merges_words_where_lines_touch(both: Both) -> None:
    area = "area = width(one) * two + three(four, five)\n"
    both.commit("Area", {"src/b.py": area})
    short = both.commit("Short", {"src/b.py": area.replace("width", "w")})
    both.write({"src/b.py": area.replace("width", "w").replace("five", "six")})
    assert both.svc("revert", short).code == 0
    assert both.files()["src/b.py"] == area.replace("five", "six")


def test_a_switch_carries_what_does_not_collide_and_names_what_does(both: Both) -> None:
    svc = both.svc
    assert svc("repo", "branch", "side").code == 0
    both.git("branch", "side")
    assert svc("switch", "side").code == 0
    both.git("switch", "-q", "side")
    both.commit("Side", {"src/b.py": "b = 9\n", "taken.txt": "side\n", "folder/x": "x\n"})
    assert svc("switch", "main").code == 0
    both.git("switch", "-q", "main")
    cases: list[tuple[dict[str, str | None], str]] = [
        ({"docs/a.txt": "mine\n"}, ""),
        ({"new.txt": "mine\n"}, ""),
        ({"docs/a.txt": None}, ""),
        ({"src/b.py": "mine\n"}, "src/b.py"),
        ({"taken.txt": "mine\n"}, "taken.txt"),
        ({"folder": "mine\n"}, "folder"),
    ]
    for edits, collides in cases:
        before = both.files()
        both.write(edits)
        edited = both.files()
        told = svc("switch", "side")
        git = subprocess.run(
            ["git", "switch", "-q", "side"], cwd=both.repository, capture_output=True, text=True
        )
        if collides:
            assert told.code == git.returncode == 1, edits
            assert f"edits in {collides};" in told.err
            assert collides in git.stderr
            assert both.files() == edited
        else:
            assert (told.code, git.returncode) == (0, 0), (told, git.stderr)
            for path, text in edits.items():
                assert both.files().get(path) == text
            assert both.files()["src/b.py"] == "b = 9\n"
            assert svc("status", "-s").out.count("\n") == 1
            assert svc("switch", "main").code == 0
            both.git("switch", "-q", "main")
            assert both.files() == edited
        for path in edits:
            if (both.here / path).exists():
                (both.here / path).unlink()
            if (both.repository / path).exists():
                (both.repository / path).unlink()
        both.git("restore", ".")
        assert svc("restore", ".").code == 0
        assert both.files() == before


def test_a_tag_or_seal_is_shown_to_be_read(both: Both) -> None:
    svc, one = both.svc, both.seals[0]
    four = both.files()
    assert svc("repo", "tag", "create", "v1", "--from", one).code == 0
    told = svc("switch", "v1")
    assert told.code == 0, told
    assert "read only" in told.err
    assert both.files()["src/c.py"] == "c = 1\n"
    told = svc("status")
    assert told.code == 0
    assert f"showing the seal {one[:12]}, read only" in told.err
    assert "svc switch main returns to it" in told.err
    assert json.loads(svc("status", "--json", "shown,behind,changed").out) == {
        "shown": one, "behind": False, "changed": [],
    }  # fmt: skip
    assert messages(svc("log", "--jq", "[.[].message]")) == ["One"]
    (both.here / "src/b.py").write_text("mine\n")
    for words in (["push", "-m", "x"], ["push", "--dry-run"]):
        told = svc(*words)
        assert told.code == 1
        assert "svc switch main" in told.err
        assert f"svc repo branch NAME --from {one[:12]}" in told.err
    assert svc("pull").code == 1, "an edit is in the way"
    assert svc("restore", "src/b.py").code == 0
    assert svc("pull").code == 0
    assert svc("switch", both.seals[1][:8]).code == 0
    assert both.files()["a.txt"] == LONG.replace("line 3 ", "LINE 3 ")
    assert svc("switch", "main").code == 0
    assert both.files() == four
    assert svc("status", "-s").out == ""


def test_edits_made_while_looking_come_along_to_a_branch_of_their_own(both: Both) -> None:
    svc, one = both.svc, both.seals[0]
    assert svc("switch", one[:8]).code == 0
    (both.here / "src/b.py").write_text("mine\n")
    told = svc("switch", "main")
    assert told.code == 1
    assert "edits in src/b.py;" in told.err
    assert svc("repo", "branch", "mine", "--json", "head").out == f'{{"head":"{one}"}}\n'
    told = svc("switch", "mine")
    assert told.code == 0, told
    assert (both.here / "src/b.py").read_text() == "mine\n"
    assert svc("push", "-m", "Mine").code == 0


def test_a_tag_and_a_seal_can_be_cloned(both: Both, tmp_path: Path) -> None:
    svc, one = both.svc, both.seals[0]
    assert svc("repo", "tag", "create", "v1", "--from", one).code == 0
    repo = f"{os.environ['TEST_HANDLE']}/app"
    for name in ("v1", one[:8]):
        target = tmp_path / f"clone-{name}"
        told = svc("repo", "clone", repo, str(target), "-b", name)
        assert told.code == 0, told
        assert "read only" in told.err
        assert (target / "src/c.py").read_text() == "c = 1\n"
        os.chdir(target)
        assert svc("push", "-m", "x").code == 1
        assert svc("switch", "main").code == 0
        assert not (target / "src/c.py").exists()
        os.chdir(both.here)
    assert svc("repo", "clone", repo, str(tmp_path / "no"), "-b", "nothing").code == 1
    assert not (tmp_path / "no").exists()
