"""What hands that know git and gh type, and what they are told."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import typer

from svc.cmd.frame.command import build
from svc.cmd.frame.foreign_commands import OPTIONS, OTHER_NAMES, WORDS
from svc.cmd.frame.specified import SPECIFIED, missing, not_built
from svc.cmd.frame.table import COMMANDS, GROUPS
from tests.svc.api.hostile import hostile, http
from tests.svc.conftest import Svc


@pytest.fixture
def linked(alice: Svc) -> Svc:
    """alice in a linked folder whose two seals say `First` and `Second`."""
    repo = f"{os.environ['TEST_HANDLE']}/app"
    assert alice("repo", "create", "app").code == 0
    assert alice("repo", "init", repo).code == 0
    for message, text in (("First", "one\n"), ("Second", "one\ntwo\n")):
        Path("src").mkdir(exist_ok=True)
        Path("src/a.txt").write_text(text)
        Path(f"{message}.txt").write_text(message)
        assert alice("push", "-m", message).code == 0
    return alice


@pytest.mark.parametrize("word", sorted(WORDS))
def test_words_of_git_are_answered_with_ours(svc: Svc, word: str) -> None:
    told = svc(*word.split(), "-m", "x")
    assert told.code == 2
    assert WORDS[word] in told.err
    assert word not in COMMANDS, "a command needs no hint"


@pytest.mark.parametrize("typed", sorted(OPTIONS))
def test_options_of_git_are_answered_with_ours(svc: Svc, typed: str) -> None:
    words = {"log -": "log -5", "push WORDS": "push origin main", "pull WORDS": "pull origin main"}
    words |= {"repo branch WORDS": "repo branch delete one", "blame WORDS": "blame main a.txt"}
    words |= {"login WORDS": "login alice", "repo transfer WORDS": "repo transfer alice/notes bob"}
    told = svc(*words.get(typed, typed).split())
    assert (told.code, told.out) == (2, ""), told
    assert OPTIONS[typed] in told.err


def test_an_option_that_nobody_knows_gets_no_advice(svc: Svc) -> None:
    assert svc("push", "--bogus").err.startswith("svc: No such option: --bogus\n")


def test_a_dash_is_the_branch_before_for_switch_alone(linked: Svc) -> None:
    told = linked("switch", "-")
    assert (told.code, told.out) == (2, "")
    assert "this folder was on no other branch; svc repo branch lists them" in told.err
    told = linked("log", "-")
    assert (told.code, told.out) == (2, "")
    assert "- is git's; svc repo branch lists the branches to name" in told.err
    assert linked("repo", "branch", "side").code == 0
    assert linked("switch", "side").code == 0
    for branch in ("main", "side"):
        assert linked("switch", "-", "--json", "branch").out == f'{{"branch":"{branch}"}}\n'
    seal = json.loads(linked("log", "--json", "id").out)[-1]["id"]
    assert linked("switch", seal).code == 0
    assert linked("switch", "-", "--json", "branch").out == '{"branch":"side"}\n'
    assert linked("switch", "-", "--json", "seal").out == f'{{"seal":"{seal}"}}\n'


def test_an_answer_names_no_other_options(svc: Svc) -> None:
    for words in (("pull", "--rebase"), ("push", "--force"), ("repo", "create", "--private")):
        told = svc(*words)
        assert (told.code, "Possible options" in told.err) == (2, False), told
    assert "Possible options: --message" in svc("push", "--mesage", "x").err


def test_a_slip_in_a_word_of_git_is_answered_too(svc: Svc) -> None:
    told = svc("comit", "-m", "x")
    assert told.code == 2
    assert "there is no command 'comit', nor 'commit'; a commit is called a seal" in told.err


@pytest.mark.parametrize("answer", sorted({*WORDS.values(), *OPTIONS.values()}))
def test_the_commands_of_an_answer_exist(answer: str) -> None:
    for named in re.findall(r"svc ([a-z][a-z-]*(?: [a-z][a-z-]*)*)", answer):
        parts = named.split()
        known = {*COMMANDS, *missing(), *GROUPS} | {" ".join(one.split()[:2]) for one in missing()}
        assert any(" ".join(parts[:length]) in known for length in range(1, len(parts) + 1)), named


def test_what_is_specified_and_not_built_says_so(svc: Svc) -> None:
    assert len(SPECIFIED) == len(set(SPECIFIED)) == 123
    assert {path.partition(" ")[0] for path in missing()} == set()
    assert not set(missing()) & {*COMMANDS}
    for path in missing():
        for more in ([], ["--help"], ["12", "-R", "a/b"]):
            told = svc(*path.split(), *more)
            assert (told.code, told.out) == (2, ""), (path, told)
            assert f"svc {path} is not in this version" in told.err
    built = {name for name, ours in OTHER_NAMES.items() if ours in GROUPS}
    absent = {path.rpartition(" ")[0] for path in missing()} - {*GROUPS}
    for group in (*absent, *(f"{one} --help" for one in absent), *(OTHER_NAMES.keys() - built)):
        told = svc(*group.split())
        assert told.code == 2
        assert "is not in this version" in told.err
    for name in built:
        told = svc(name, "list")
        assert (told.code, f"did you mean: svc {OTHER_NAMES[name]}" in told.err) == (2, True), told


@pytest.mark.parametrize("path", [path for path in SPECIFIED if path in COMMANDS])
def test_what_is_built_is_not_said_to_be_missing(path: str) -> None:
    *group, name = path.split()
    assert not_built(" ".join(group), [name]) is None


def test_help_by_every_spelling(svc: Svc) -> None:
    whole = svc("--help").out
    assert svc("-h").out == svc("help").out == svc().out == whole
    assert svc("help", "repo", "tag").out == svc("repo", "tag", "-h").out == svc("repo", "tag", "--help").out
    assert svc("help", "nonsense").code == 2


def test_log_takes_files_branches_and_short_ids(linked: Svc) -> None:
    def messages(*words: str) -> list[str]:
        told = linked("log", *words, "--json", "message")
        assert told.code == 0, told
        return [seal["message"] for seal in json.loads(told.out)]

    assert messages() == messages("main") == messages("src/a.txt") == ["Second", "First"]
    assert messages("First.txt") == ["First"]
    assert messages("-n", "1") == messages("-L", "1") == ["Second"]
    Path("First.txt").unlink()
    assert messages("First.txt") == ["First"], "a file that the last seal has need not be here"
    first = json.loads(linked("log", "--json", "id").out)[1]["id"]
    assert messages(first[:12]) == messages(first) == ["First"]
    assert linked("repo", "branch", "Second.txt", "--from", first).code == 0
    assert messages("Second.txt") == ["First"], "a branch goes before a file"
    assert messages("--path", "Second.txt") == ["Second"]


def test_short_ids_where_refs_are_taken(linked: Svc) -> None:
    second, first = (seal["id"] for seal in json.loads(linked("log", "--json", "id").out))
    files = json.loads(linked("diff", "--base", first[:12], "--head", second[:8], "--json", "path").out)
    assert [file["path"] for file in files] == ["Second.txt", "src/a.txt"]
    assert linked("restore", "src", "--source", first[:12]).code == 0
    assert Path("src/a.txt").read_text() == "one\n"
    assert linked("blame", "src/a.txt", "--ref", first[:12]).out.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ["log", "nope"],
        ["log", "abcdef123456"],
        ["diff", "--base", "main", "--head", "nope"],
        ["restore", "src", "--source", "nope"],
        ["blame", "src/a.txt", "--ref", "nope"],
        ["repo", "branch-delete", "nope"],
        ["repo", "tag", "delete", "nope"],
        ["diff", "nope"],
        ["blame", "nope"],
        ["restore", "nope"],
        ["switch", "nope"],
        ["repo", "branch", "x", "--from", "nope"],
    ],
)
def test_what_is_not_there_is_named(linked: Svc, words: list[str]) -> None:
    told = linked(*words)
    assert (told.code, told.out) == (1, "")
    assert "nope" in told.err or "abcdef123456" in told.err
    assert "hidden" not in told.err
    assert "you may not see it" not in told.err


def test_the_diff_of_the_folder_as_data(linked: Svc) -> None:
    assert linked("diff", "--json").out == "[]\n"
    Path("src/a.txt").write_text("one\n2\n3\n")
    Path("First.txt").unlink()
    Path("new.bin").write_bytes(b"\0\1")
    fields = "path,status,additions,deletions,binary"
    found = json.loads(linked("diff", "--json", fields).out)
    assert [list(file.values()) for file in found] == [
        ["First.txt", "removed", 0, 1, False],
        ["new.bin", "added", 0, 0, True],
        ["src/a.txt", "modified", 2, 1, False],
    ]
    patch = linked("diff", "src", "--json", "patch", "--jq", ".[].patch").out
    assert patch.rstrip("\n") == linked("diff", "src").out.rstrip("\n")
    assert "Binary files differ: new.bin" in linked("diff").out


def test_a_switch_speaks_of_the_switch(linked: Svc) -> None:
    assert linked("repo", "branch", "dev").code == 0
    assert linked("switch", "dev").code == 0
    Path("src/a.txt").write_text("of dev\n")
    assert linked("push", "-m", "Of dev").code == 0
    assert linked("switch", "main").code == 0
    Path("src/a.txt").write_text("edited\n")
    told = linked("switch", "dev")
    assert told.code == 1
    assert "svc switch dev --merge" in told.err
    assert "pull" not in told.err
    assert linked("switch", "main").code == 0, "where one is already, nothing is in the way"
    assert Path("src/a.txt").read_text() == "edited\n"
    assert linked("switch", "dev", "--merge").code == 1
    assert any("edited" in path.read_text() for path in Path("src").iterdir())


def test_a_file_over_the_cap_is_named_with_its_size(linked: Svc) -> None:
    with Path("huge.bin").open("wb") as file:
        file.write(b"\0")
        file.truncate(17 * 1024 * 1024)
    Path("src/a.txt").write_text("changed\n")
    told = linked("status", "-s")
    assert told.err == ""
    over = "17.0 MiB, over the size cap of a file (16.0 MiB); limits.max_file_mib in .svc.yaml raises it"
    assert told.out == f"changed\tsrc/a.txt\t\nskipped\thuge.bin\t{over}\n"
    told = linked("push", "-m", "Third", "--json")
    assert f"skipped huge.bin: {over}" in told.err
    record = json.loads(told.out)
    assert record["sent"] == ["src/a.txt"]
    with Path("huge.bin").open("r+b") as file:
        file.truncate(101 * 1024 * 1024)
    elsewhere = "over the size cap of a file (16.0 MiB); a repository of kind dataset or model takes it"
    assert elsewhere in linked("status").out
    Path("huge.txt").write_text("a line of text\n" * 1_800_000)
    assert "25.7 MiB, over the size cap of a file (16.0 MiB)" in linked("status").out
    assert "; a text may have 25 MiB" in linked("status").out
    assert [(one["path"], one["size"], one["cap"]) for one in record["skipped"]] == [
        ("huge.bin", 17 * 1024 * 1024, 16 * 1024 * 1024)
    ]


def test_a_first_push_names_the_built_in_rules_that_left_files_out(alice: Svc) -> None:
    assert alice("repo", "create", "out").code == 0
    assert alice("repo", "init", f"{os.environ['TEST_HANDLE']}/out").code == 0
    for path in ("build/main.c", "src/a.tmp", "src/b.tmp", "src/a.c", "logs/x.log"):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text("x\n")
    Path(".gitignore").write_text("*.log\n")
    rules = "left out by built-in rules: build/ (1), *.tmp (2); svc status --ignored lists them"
    assert rules in alice("push", "-m", "First").err
    Path("src/a.c").write_text("y\n")
    assert "left out" not in alice("push", "-m", "Second").err


def test_a_large_push_says_what_it_sent(linked: Svc) -> None:
    Path("noise.bin").write_bytes(b"\0" + os.urandom(2 * 1024 * 1024))
    Path("zeros.bin").write_bytes(bytes(4 * 1024 * 1024))
    told = linked("push", "-m", "Bytes")
    assert "sent 2.0 MiB for 6.0 MiB of files in " in told.err
    assert "4.0 MiB were stored already or saved by compression" in told.err
    assert "sent" not in linked("push", "-m", "Again").err


def test_a_renamed_repository_is_renamed_in_this_folder(linked: Svc) -> None:
    assert linked("repo", "rename", "journal").code == 0
    assert linked("status", "--offline", "--json", "repo", "--jq", ".repo").out.endswith("/journal\n")
    assert linked("status").code == 0


def test_nothing_is_written_into_git_and_git_does_not_see_the_link(linked: Svc) -> None:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout

    def inside() -> dict[str, bytes]:
        return {str(file): file.read_bytes() for file in Path(".git").rglob("*") if file.is_file()}

    git("init", "-q")
    before = inside()
    again = linked("repo", "init", f"{os.environ['TEST_HANDLE']}/app")
    assert again.code == 0
    assert "gitignore" not in again.err
    Path("src/a.txt").write_text("again\n")
    for words in (["status"], ["pull", "--merge"], ["push", "-m", "Third"], ["diff"], ["restore", "src"]):
        assert linked(*words).code == 0
    assert inside() == before
    assert ".svc" not in git("status", "--porcelain", "--untracked-files=all")


def test_https_to_a_server_of_http_is_one_clear_line(svc: Svc) -> None:
    with hostile(http("400 No", b"plain")) as server:
        told = svc("repo", "list", "a", "--server", server.origin.replace("http:", "https:"))
        assert told.code == 1
        assert "http://" in told.err
        assert len(told.err.splitlines()) == 1


def test_after_a_revocation_a_new_key_joins_with_a_code(alice: Svc) -> None:
    handle, home = os.environ["TEST_HANDLE"], Path(os.environ["SVC_HOME"])
    code = alice("auth", "device", "add").out.strip()
    key = alice("repo", "device", "status", "--jq", ".id").out.strip()
    assert alice("auth", "device", "revoke", key, "--yes").code == 0
    told = alice("login", "--device-key", "--handle", handle)
    assert told.code == 4
    assert "svc login --new-key" in told.err
    again = ["login", "--device-key", "--handle", handle, "--new-key"]
    assert alice(*again).code == 2, "a key is not thrown away without a yes"
    assert alice(*again, "--yes", "--pair", code).code == 0
    new = alice("repo", "device", "status", "--jq", ".id").out.strip()
    assert new != key
    assert alice("repo", "create", "after").code == 0
    assert [file.name for file in home.iterdir() if file.name.endswith(key)], "the old key is kept"
    listed = {one["id"]: one["this"] for one in json.loads(alice("auth", "device", "list", "--json").out)}
    assert listed == {key: False, new: True}


def test_what_no_push_sends_is_in_no_diff_and_fails_a_strict_push(linked: Svc) -> None:
    Path("moved").mkdir()
    Path("moved/b.txt").write_text("stays on the branch\n")
    assert linked("push", "-m", "Before", "--strict").code == 0
    Path("huge.bin").write_bytes(b"\0" * (17 << 20))
    Path("link").symlink_to("src/a.txt")
    shutil.rmtree("moved")
    Path("moved").symlink_to("src")
    Path("src/a.txt").write_text("changed\n")
    assert linked("diff", "--name-only").out.split() == ["src/a.txt"]
    rehearsed = linked("push", "-m", "Third", "--strict", "--dry-run")
    assert (rehearsed.code, "3 files would be left out, and --strict is given" in rehearsed.err) == (1, True)
    told = linked("push", "-m", "Third", "--strict", "--json", "sent,seal")
    assert (told.code, json.loads(told.out)["sent"]) == (1, ["src/a.txt"])
    assert json.loads(told.out)["seal"] is not None
    assert "3 files left out, and --strict was given" in told.err
    assert linked("diff", "--name-only").out == ""
    again = linked("push", "-m", "Fourth", "--strict")
    assert (again.code, "Nothing to seal" in again.err + again.out) == (1, True)
    assert linked("push", "-m", "Fourth").code == 0


def test_a_dry_run_says_what_would_be_and_claims_nothing_as_done(linked: Svc) -> None:
    Path("large.bin").write_bytes(os.urandom(3 << 20))
    Path("link").symlink_to("src/a.txt")
    Path("src/a.txt").write_text("changed\n")
    told = linked("push", "--dry-run")
    assert told.out == "Would send 2 files: large.bin, src/a.txt and seal the branch\n"
    assert "would skip link: " in told.err
    assert not re.search(r"(?i)\b(sent|skipped|sealed|removed|stored)\b", told.err), told.err
    told = linked("push", "-m", "Third")
    assert re.search(r"(?m)^skipped link: ", told.err)
    assert re.search(r"(?m)^sent 3\.\d MiB for 3\.\d MiB|^sent 3\.\d MB for 3\.\d MB", told.err), told.err


def test_an_organisation_that_is_not_there_is_not_taken_for_a_missing_member(alice: Svc) -> None:
    for words in (["leave", "nowhere"], ["member", "remove", "nowhere", "bob"]):
        told = alice("org", *words, "--yes")
        assert (told.code, told.err) == (
            1,
            "svc: you are not a member of an organisation nowhere; see: svc org list\n",
        )
    told = alice("org", "member", "role", "nowhere", "bob", "admin")
    assert "you are not a member of an organisation nowhere" in told.err


def test_a_push_that_removes_most_of_a_branch_needs_a_yes(linked: Svc) -> None:
    for number in range(120):
        Path(f"f{number}.txt").write_text("same\n")
    assert linked("push", "-m", "Many").code == 0
    for number in range(110):
        Path(f"f{number}.txt").unlink()
    told = linked("push", "-m", "Gone")
    assert (told.code, told.out) == (2, "")
    assert "Removing 110 of the branch's 12" in told.err
    assert "add --yes" in told.err
    assert linked("push", "--dry-run").code == 0
    assert "f0.txt" in linked("status").out
    told = linked("push", "-m", "Gone", "--yes")
    assert (told.code, "110 removed" in told.err) == (0, True), told


@pytest.mark.parametrize(
    "typed",
    [("issue", "list", "--limit", "٣"), ("pr", "checks", "--interval", "1_0"), ("tui", "--port", "３")],
)
def test_numbers_are_written_in_plain_digits(svc: Svc, typed: tuple[str, ...]) -> None:
    told = svc(*typed)
    assert (told.code, told.out) == (2, "")
    assert f"{typed[-2]} wants a " in told.err
    assert f", in the digits 0 to 9, not '{typed[-1]}'" in told.err


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("log -n x", "-n wants a whole number from 1 on, not 'x'"),
        ("log -nx", "-n wants a whole number from 1 on, not 'x'"),
        ("issue list -L 0", "-L wants a whole number from 1 on, not '0'"),
        ("repo list --limit=3x", "--limit wants a whole number from 1 on, not '3x'"),
        ("pr list -s shut", "-s wants open, closed, merged or all, not 'shut'"),
    ],
)
def test_a_value_that_does_not_fit_is_answered_with_what_fits(svc: Svc, typed: str, sentence: str) -> None:
    told = svc(*typed.split())
    assert (told.code, told.err.splitlines()[0]) == (2, f"svc: {sentence}")


@pytest.mark.parametrize("path", COMMANDS)
def test_every_number_and_choice_is_explained(path: str) -> None:
    for param in build(path).own_params:
        if param.type.name.partition(" ")[0] not in ("int", "integer", "float", "choice", "datetime"):
            continue
        with pytest.raises(typer.BadParameter) as caught:
            param.type.convert("no such value", param, None)
        sentence = caught.value.format_message()
        assert " wants " in sentence and sentence.endswith(", not 'no such value'"), (path, sentence)
