"""What the specification promises of a linked folder, with the real command and a real relay."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from localstore.core.model.live import UpdateAnswers, UpdateBatch
from svc.api.sync_transport import BranchTransport
from tests.svc.conftest import Svc
from tests.svc.flows.test_large_files import killed, made, pushed, within


@pytest.fixture
def full(alice: Svc) -> str:
    """The folder we are in is linked to this new repository."""
    return made(alice, "app", "folder")


def asked(alice: Svc, path: str) -> Any:
    """The JSON of a GET below the repository."""
    repo_id = json.loads(Path(".svc/repo.json").read_text())["repo_id"]
    answer = alice("repo", "api", f"/api/v1/repos/{repo_id}{path}")
    assert answer.code == 0, answer.err
    return json.loads(answer.out)


def sealed(alice: Svc) -> dict[str, str]:
    """Path → BLAKE3 of the head's files, from the relay."""
    head = asked(alice, "/refs/branch/main")["head"]
    return {one["path"]: one["blake3"] for one in asked(alice, f"/tree/{head}?recursive=1")["entries"]}


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def git(*words: str) -> str:
    settings = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    return subprocess.run(["git", *settings, *words], capture_output=True, text=True, check=True).stdout


def below(*folders: str) -> dict[str, tuple[bytes, int]]:
    return {
        str(file): (file.read_bytes(), file.stat().st_mtime_ns)
        for folder in folders
        for file in Path(folder).rglob("*")
        if file.is_file()
    }


def test_the_link_says_where_it_leads_and_what_was_pushed(alice: Svc, full: str) -> None:
    write("a.txt", "one\n")
    write("deep/er/b.txt", "two\n")
    seal = pushed(alice)["seal"]
    repo = json.loads(Path(".svc/repo.json").read_text())
    shown = json.loads(alice("repo", "view", full, "--json", "id,class").out)
    assert (repo["server"], repo["repo"], repo["branch"]) == (os.environ["SVC_SERVER"], full, "main")
    assert (repo["repo_id"], repo["class"]) == (shown["id"], shown["class"])
    state = json.loads(Path(".svc/state.json").read_text())
    digests = {path: blake3(Path(path).read_bytes()).hexdigest() for path in ("a.txt", "deep/er/b.txt")}
    assert state["last_seal"] == seal
    assert state["tree"] == sealed(alice) == digests


def test_the_link_follows_what_the_repository_becomes(alice: Svc, full: str) -> None:
    """Its class, and its name where somebody renamed it elsewhere; the rest of the link stays."""
    write("a.txt", "one\n")
    pushed(alice)
    link, here = Path(".svc/repo.json"), Path.cwd()
    before, known = json.loads(link.read_text()), full
    classes = {"public": "published_public", "private": "private_plaintext"}
    for number, (words, who) in enumerate(
        [(["status"], "public"), (["pull"], "private"), (["push", "-m", "two"], "public")]
    ):
        os.chdir("..")
        assert alice("repo", "visibility", who, "-R", known, "--yes").code == 0
        assert alice("repo", "rename", f"folder-{number}", "-R", known).code == 0
        os.chdir(here)
        assert json.loads(link.read_text())["repo"] == known
        known = f"{full.partition('/')[0]}/folder-{number}"
        write("a.txt", "two\n" if words[0] == "push" else "one\n")
        told = alice(*words)
        assert told.code == 0, told.err
        assert words != ["status"] or known in told.err
        assert json.loads(link.read_text()) == {**before, "class": classes[who], "repo": known}
    assert alice("status", "--offline").code == 0


def test_metadata_folders_are_never_uploaded_nor_written_whatever_the_rules_say(
    alice: Svc, full: str, tmp_path: Path
) -> None:
    git("init", "-q")
    write(".git/hooks/mine", "a hook\n")
    write(".oxen/x", "oxen\n")
    write("in/.oxen/y", "oxen\n")
    write(".svcignore", "!*\n!.svc/\n!.git/\n!.oxen/\n!.git/**\n!.svc/**\n")
    write("a.txt", "one\n")
    before = below(".git", ".oxen", "in/.oxen")
    pushed(alice)
    write("a.txt", "two\n")
    for words in (["status"], ["diff"], ["push", "-m", "two"], ["pull"], ["restore", "a.txt"]):
        assert alice(*words).code == 0
    assert alice("repo", "branch", "side").code == 0
    assert alice("switch", "side").code == 0
    assert below(".git", ".oxen", "in/.oxen") == before
    assert sorted(sealed(alice)) == [".svcignore", "a.txt"]
    assert alice("repo", "clone", full, str(tmp_path / "b")).code == 0
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == [".svc", ".svcignore", "a.txt"]
    assert sorted(path.name for path in (tmp_path / "b" / ".svc").iterdir()) == [
        ".gitignore",
        "id",
        "repo.json",
        "state.json",
    ]


def test_git_and_svc_take_turns_in_one_folder(alice: Svc, full: str) -> None:
    git("init", "-q", "-b", "main")
    write(".svcignore", "secret.txt\n")
    write("secret.txt", "git has it, svc does not\n")
    write("a.txt", "one\n")
    assert "secret.txt" in git("status", "--porcelain", "--untracked-files=all")
    pushed(alice)
    git("add", "a.txt", "secret.txt")
    git("commit", "-q", "-m", "one")
    write("a.txt", "two\n")
    assert pushed(alice)["sent"] == ["a.txt"]
    assert git("status", "--porcelain", "a.txt") == " M a.txt\n"
    git("checkout", "-q", "a.txt")
    assert json.loads(alice("status", "--json").out)["changed"] == ["a.txt"]
    assert pushed(alice)["sent"] == ["a.txt"]
    assert git("fsck", "--strict") == ""
    assert sorted(sealed(alice)) == [".svcignore", "a.txt"]


def test_the_higher_source_wins_in_each_pair(alice: Svc, full: str) -> None:
    sources = (".svcignore", ".stignore", ".gitignore")
    rules: dict[str, list[str]] = {source: [] for source in sources}
    kept, left = [], []
    for at, high in enumerate(sources):
        for low in sources[at + 1 :]:
            name = f"{high[1:3]}-{low[1:3]}"
            rules[high] += [f"!{name}.in", f"{name}.out"]
            rules[low] += [f"{name}.in", f"!{name}.out"]
            kept.append(f"{name}.in")
            left.append(f"{name}.out")
        rules[high].append(f"!{high[1:3]}.swp")  # against the built-in defaults
        kept.append(f"{high[1:3]}.swp")
    for source, lines in rules.items():
        write(source, "\n".join(lines) + "\n")
    for name in (*kept, *left, "default.swp"):
        write(name, name)
    pushed(alice)
    assert sorted(sealed(alice)) == sorted([*sources, *kept])


def test_deleting_the_link_only_unlinks_and_init_links_again(alice: Svc, full: str) -> None:
    write("a.txt", "one\n")
    pushed(alice)
    before = sealed(alice)
    shutil.rmtree(".svc")
    told = alice("status")
    assert (told.code, "not linked" in told.err) == (1, True), told.err
    assert Path("a.txt").read_text() == "one\n"
    assert alice("repo", "init", full).code == 0
    assert sealed(alice) == before
    found = json.loads(alice("status", "--json").out)
    assert (found["repo"], found["changed"], found["new"]) == (full, [], [])
    assert pushed(alice)["seal"] is None


def test_a_push_sends_one_update_for_each_changed_file_and_removes_what_is_gone(
    alice: Svc, full: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, str]] = []
    real = BranchTransport.updates

    def watched(self: BranchTransport, batch: UpdateBatch) -> UpdateAnswers:
        seen.extend((update.kind, update.path) for update in batch.updates)
        return real(self, batch)

    monkeypatch.setattr(BranchTransport, "updates", watched)
    for path in ("a.txt", "d/b.txt", "d/e/c.txt", "same.txt"):
        write(path, f"{path}\n")
    pushed(alice)
    assert sorted(seen) == [("create_text", path) for path in ("a.txt", "d/b.txt", "d/e/c.txt", "same.txt")]
    seen.clear()
    write("a.txt", "edited\n")
    Path("d/e/c.txt").unlink()
    Path("d/b.txt").write_bytes(b"\0")
    pushed(alice)
    assert sorted(seen) == [("delete", "d/e/c.txt"), ("edit_text", "a.txt"), ("set_blob", "d/b.txt")]
    assert sorted(sealed(alice)) == ["a.txt", "d/b.txt", "same.txt"]
    Path("same.txt").unlink()
    assert alice("push", "-m", "keep", "--no-delete").code == 0
    assert "same.txt" in sealed(alice)


def test_edits_that_are_live_and_not_sealed_are_in_no_code_history_or_clone(
    alice: Svc, full: str, tmp_path: Path
) -> None:
    write("a.txt", "sealed\n")
    seal = pushed(alice)["seal"]
    write("a.txt", "live\n")
    write("new.txt", "live\n")
    killed("prepare", 0, "push", "-m", "never sealed")
    assert asked(alice, "/refs/branch/main")["head"] == seal
    assert [one["id"] for one in asked(alice, "/log?ref=main")["items"]] == [seal]
    assert sorted(sealed(alice)) == ["a.txt"]
    assert asked(alice, f"/blob/{seal}/a.txt")["content"] == "sealed\n"
    assert alice("repo", "clone", full, str(tmp_path / "b")).code == 0
    assert (tmp_path / "b" / "a.txt").read_text() == "sealed\n"
    assert not (tmp_path / "b" / "new.txt").exists()
    assert within(tmp_path / "b", alice, "pull") == 0
    assert (tmp_path / "b" / "a.txt").read_text() == "live\n", "they are there: a pull brings them"


def test_a_push_over_an_unpulled_seal_is_refused_with_the_way_out(
    alice: Svc, full: str, tmp_path: Path
) -> None:
    write("a.txt", "one\n")
    pushed(alice)
    assert alice("repo", "clone", full, str(tmp_path / "b")).code == 0
    write("a.txt", "two\n")
    head = pushed(alice)["seal"]
    (tmp_path / "b" / "a.txt").write_text("stale\n")
    assert within(tmp_path / "b", alice, "push", "-m", "stale") == 1
    assert asked(alice, "/refs/branch/main")["head"] == head
    assert asked(alice, f"/blob/{head}/a.txt")["content"] == "two\n"


def test_a_push_to_a_protected_branch_says_so_before_it_asks_for_a_pull(
    alice: Svc, full: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder lacks a seal and the branch takes no pushes: pulling would help nobody."""
    write("a.txt", "one\n")
    pushed(alice)
    assert alice("repo", "clone", full, str(tmp_path / "b")).code == 0
    write("a.txt", "two\n")
    pushed(alice)
    assert alice("repo", "protect", "set", "main", "--require-review").code == 0
    monkeypatch.chdir(tmp_path / "b")
    clean = alice("push", "-m", "Nothing")
    assert (clean.code, "not pulled" in clean.err) == (1, True), "there is nothing that the rule refuses"
    Path("b.txt").write_text("mine\n")
    told = alice("push", "-m", "Mine")
    assert told.code == 1
    assert "main is protected by the rule main" in told.err
    assert "svc repo branch NAME --from main and svc switch NAME --merge" in told.err
    assert "not pulled" not in told.err
    assert alice("repo", "branch", "mine", "--from", "main").code == 0
    assert alice("switch", "mine", "--merge").code == 0
    assert alice("push", "-m", "Mine").code == 0
