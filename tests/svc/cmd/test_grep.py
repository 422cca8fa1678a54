"""`svc grep`: the files of a folder, and of a seal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from svc.cmd.frame import app
from svc.cmd.frame.context import Run
from svc.console import Out
from svc.flows.search import texts as sources
from svc.flows.search.texts import SearchTexts
from tests.patience import PATIENCE
from tests.svc.cmd.test_refused_first import asked
from tests.svc.conftest import ROOT, Svc
from tests.svc.out.test_terminal import speaker

NOWHERE = "http://127.0.0.1:9"


def me() -> str:
    return os.environ["TEST_HANDLE"]


@pytest.fixture
def folder(alice: Svc) -> Svc:
    """alice in a linked folder with two seals and an edit."""
    assert alice("repo", "create", "app").code == 0
    assert alice("repo", "init", f"{me()}/app").code == 0
    Path("src").mkdir()
    Path("src/main.py").write_text("def main():\n    return 2\n")
    Path("README.md").write_text("Read me.\r\nmain is where it begins\r\n")
    Path("old.txt").write_text("main was here\n")
    Path("data.bin").write_bytes(b"main\0main\n")
    assert alice("push", "-m", "One").code == 0
    Path("old.txt").unlink()
    Path("src/main.py").write_text("def main():\n    return 3\n")
    assert alice("push", "-m", "Two").code == 0
    Path("src/main.py").write_text("def main():\n    return 4\n\n# no end: main")
    return alice


def test_the_folder_is_searched_as_it_is_without_a_request(folder: Svc, node: str) -> None:
    before = asked(node)
    told = folder("grep", "main")
    assert (
        told.out
        == "README.md:2:main is where it begins\nsrc/main.py:1:def main():\nsrc/main.py:4:# no end: main\n"
    )
    assert (told.code, told.err) == (0, "not searched: 1 binary file\n")
    assert folder("grep", "-n", "MAIN").code == 1
    assert folder("grep", "-i", "MAIN").out == told.out
    assert folder("grep", "-c", "main").out == "README.md:1\nsrc/main.py:2\n"
    assert folder("grep", "-l", "main").out == "README.md\nsrc/main.py\n"
    assert folder("grep", "-w", "mai").code == 1
    assert folder("grep", r"return \d").out == "src/main.py:2:    return 4\n"
    assert folder("grep", "-F", r"return \d").code == 1
    assert folder("grep", "-F", "main()").out == "src/main.py:1:def main():\n"
    assert folder("grep", "begins$").code == 0
    data = json.loads(folder("grep", "-w", "main", "--json").out)
    assert data[0] == {"path": "README.md", "line": 2, "text": "main is where it begins"}
    assert json.loads(folder("grep", "main", "--json", "line,path").out)[1] == {
        "line": 1,
        "path": "src/main.py",
    }
    assert json.loads(folder("grep", "-c", "main", "--json").out)[1] == {"path": "src/main.py", "count": 2}
    assert json.loads(folder("grep", "-l", "main", "--json").out)[1] == {"path": "src/main.py"}
    assert folder("grep", "main", "--jq", ".[1].text").out == "def main():\n"
    assert asked(node) == before


def test_nothing_matches_ends_with_1(folder: Svc) -> None:
    told = folder("grep", "nowhere")
    assert (told.code, told.out) == (1, "")
    assert told.err.splitlines() == ["not searched: 1 binary file", "nothing matches"]
    told = folder("grep", "nowhere", "--json")
    assert (told.code, told.out) == (1, "[]\n")


def test_what_is_wrong_is_said_before_anything_is_read(svc: Svc) -> None:
    told = svc("grep", "a[b")
    assert (told.code, told.out) == (2, "")
    assert "unterminated character set, at character 2, before '[b'" in told.err
    assert svc("grep").code == 2
    assert svc("grep", "-l", "-c", "a").code == 2
    assert svc("grep", "a", "--json", "lines").code == 2
    assert svc("grep", "a", "--limit", "0").code == 2
    told = svc("grep", "-rn", "a")
    assert "searches the folders below by itself" in told.err
    told = svc("grep", "a")
    assert "which repository?" in told.err


def test_paths_and_patterns_limit_the_search(folder: Svc) -> None:
    assert folder("grep", "-l", "main", "src").out == "src/main.py\n"
    assert folder("grep", "-l", "main", "*.md").out == "README.md\n"
    assert folder("grep", "-l", "main", "--", "*.md", "src/main.py").out == "README.md\nsrc/main.py\n"
    assert folder("grep", "-l", "--", "main", "src").out == "src/main.py\n"
    os.chdir("src")
    assert folder("grep", "-l", "main", ".").out == "src/main.py\n"
    assert folder("grep", "-l", "main", "main.py").out == "src/main.py\n"
    assert folder("grep", "-l", "main").out == "README.md\nsrc/main.py\n"
    assert folder("grep", "-l", "main", "--", "../README.md").out == "README.md\n"
    os.chdir("..")
    told = folder("grep", "main", "--", "gone")
    assert (told.code, told.out) == (1, "")
    assert "no file of this folder is gone" in told.err
    told = folder("grep", "main", "HEAD", "--", "gone")
    assert "no file of this seal is gone" in told.err
    assert folder("grep", "main", "--", "../..").code == 2


def test_a_seal_is_searched_by_any_of_its_names(folder: Svc) -> None:
    two, one = json.loads(folder("log", "--jq", "map(.id)").out)
    assert folder("repo", "tag", "create", "v1", "--from", one).code == 0
    for name in ("v1", one, one[:12], "HEAD~1", "main^"):
        told = folder("grep", "main|return", name)
        assert told.out.splitlines() == [
            "README.md:2:main is where it begins",
            "old.txt:1:main was here",
            "src/main.py:1:def main():",
            "src/main.py:2:    return 2",
        ], name
        assert told.err == "not searched: 1 binary file\n"
    for name in ("main", "HEAD", "@", two):
        assert folder("grep", "return", name).out == "src/main.py:2:    return 3\n"
    assert folder("grep", "return", "v1", "src").out == "src/main.py:2:    return 2\n"
    assert folder("grep", "return", "v1", "--", "src").out == "src/main.py:2:    return 2\n"
    assert folder("grep", "return", "v1", "*.md").code == 1
    assert folder("grep", "return", "-R", f"{me()}/app").out == "src/main.py:2:    return 3\n"
    assert folder("grep", "return", "v1", "-R", f"{me()}/app").out == "src/main.py:2:    return 2\n"
    told = folder("grep", "return", "nothing")
    assert (told.code, told.out) == (1, "")
    assert "no branch, tag or seal nothing" in told.err
    told = folder("grep", "return", "a.md", "-R", f"{me()}/app")
    assert "svc log; if it is a path: svc grep PATTERN -- a.md" in told.err


def test_the_last_seal_is_searched_offline(folder: Svc, node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    two, _ = json.loads(folder("log", "--jq", "map(.id)").out)
    before = asked(node)
    for name in ("HEAD", "@", two):
        assert folder("grep", "return", name).out == "src/main.py:2:    return 3\n"
    assert asked(node) == before


def test_without_a_server(folder: Svc) -> None:
    link = json.loads(Path(".svc/repo.json").read_text())
    Path(".svc/repo.json").write_text(json.dumps({**link, "server": NOWHERE}))
    os.environ.pop("SVC_SERVER")
    assert folder("grep", "return").out == "src/main.py:2:    return 4\n"
    assert folder("grep", "return", "HEAD").out == "src/main.py:2:    return 3\n"
    told = folder("grep", "return", "HEAD~1")
    assert (told.code, told.out) == (1, "")
    assert NOWHERE in told.err


def test_what_a_push_leaves_out_is_not_searched(folder: Svc, tmp_path: Path) -> None:
    Path(".gitignore").write_text("ignored/\n")
    for name in ("ignored", "node_modules", ".git"):
        Path(name).mkdir()
        Path(name, "a.txt").write_text("main\n")
    (tmp_path / "outside").write_text("main\n")
    Path("link").symlink_to(tmp_path / "outside")
    Path("loop").symlink_to(".")
    os.mkfifo("pipe")
    Path("latin.txt").write_bytes("main für\n".encode("latin-1"))
    told = folder("grep", "-l", "main")
    assert told.out == "README.md\nsrc/main.py\n"
    assert told.err == "not searched: 2 binary files, 3 that a push skips (svc status lists them)\n"
    assert folder("grep", "-l", "main", "src").err == ""


def test_a_file_that_cannot_be_read_is_counted(folder: Svc, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(Out(os.environ), os.environ, Path.cwd())
    texts = SearchTexts(run)
    read = texts.read()
    assert next(read)[0] == "README.md"
    Path("src/main.py").unlink()
    assert list(read) == []
    assert texts.skipped == {"binary": 1, "unreadable": 1}
    run.close()


def test_a_reader_sees_no_line_of_a_private_path(
    folder: Svc, node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("plan").mkdir()
    Path("plan/secret.txt").write_text("return it\n")
    assert folder("push", "-m", "Plan").code == 0
    assert folder("repo", "paths", "set", "plan", "--private").code == 0
    assert folder("repo", "visibility", "public", "--yes").code == 0
    repo = f"{me()}/app"
    assert folder("grep", "-l", "return", "-R", repo).out == "plan/secret.txt\nsrc/main.py\n"
    assert folder("grep", "-l", "return", "HEAD").out == "plan/secret.txt\nsrc/main.py\n"
    for words in (("login", "--device-key", "--handle", f"r-{me()[:30]}"), ()):
        monkeypatch.setenv("SVC_HOME", str(tmp_path / f"other{len(words)}"))
        (tmp_path / f"read{len(words)}").mkdir()
        monkeypatch.chdir(tmp_path / f"read{len(words)}")
        assert not words or folder(*words).code == 0
        told = folder("grep", "-l", "return", "-R", repo)
        assert (told.code, told.out) == (0, "src/main.py\n"), told
        assert folder("grep", "return", "-R", repo, "--", "plan").code == 1
        assert folder("repo", "clone", repo, "copy").code == 0
        os.chdir("copy")
        assert folder("grep", "-l", "return").out == "src/main.py\n"
        assert folder("grep", "-l", "return", "HEAD").out == "src/main.py\n"
        assert folder("grep", "-l", "return", "HEAD~1").out == "src/main.py\n"


def test_many_files_come_in_batches_and_in_order(folder: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BATCH_FILES", 7)
    for number in range(100):
        Path(f"many/{number:03}").mkdir(parents=True)
        Path(f"many/{number:03}/a.txt").write_text("" if number % 3 else f"line\nhit {number % 10}\n")
    assert folder("push", "-m", "Many").code == 0
    expected = [f"many/{number:03}/a.txt:2:hit {number % 10}" for number in range(0, 100, 3)]
    for words in ((), ("HEAD",), ("-R", f"{me()}/app")):
        assert folder("grep", "hit", *words).out.splitlines() == expected
    told = folder("grep", "hit", "--limit", "5")
    assert told.out.splitlines() == expected[:5]
    assert "only the first 5 are printed, and more match" in told.err
    assert "only" not in folder("grep", "hit", "-L", "34").err
    assert folder("grep", "-l", "hit", "-L", "2").out.splitlines() == ["many/000/a.txt", "many/003/a.txt"]


def test_ten_thousand_files(folder: Svc) -> None:
    for number in range(10_000):
        below = Path(f"many/{number // 100:03}")
        below.mkdir(parents=True, exist_ok=True)
        (below / f"{number}.txt").write_text(f"first\nnumber {number}\n")
    told = folder("grep", "-w", "number 99.9")
    assert told.out.splitlines() == [f"many/099/99{n}9.txt:2:number 99{n}9" for n in range(10)]
    assert folder("grep", "-l", "number").out.count("\n") == 10_000


def test_escapes_stay_text_on_a_terminal(folder: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("evil.txt").write_text("a\x1b]0;owned\x07main\u202e\tb\nx\n")
    out, stdout, _ = speaker()
    monkeypatch.setattr(app, "Out", lambda _: out)
    folder("grep", "main|0;")
    assert stdout.getvalue() == (
        "\x1b[36mREADME.md\x1b[0m\n\x1b[2m2:\x1b[0m\x1b[1mmain\x1b[0m is where it begins\n\n"
        "\x1b[36mevil.txt\x1b[0m\n\x1b[2m1:\x1b[0ma\\x1b]\x1b[1m0;\x1b[0mowned\\x07\x1b[1mmain\x1b[0m\\u202e\tb\n\n"
        "\x1b[36msrc/main.py\x1b[0m\n\x1b[2m1:\x1b[0mdef \x1b[1mmain\x1b[0m():\n"
        "\x1b[2m4:\x1b[0m# no end: \x1b[1mmain\x1b[0m\n"
    )


def test_head_ends_it_quietly_and_ctrl_c_a_slow_pattern(folder: Svc) -> None:
    Path("long.txt").write_text("line of main\n" * 200_000)
    svc = [sys.executable, "-P", "-m", "svc", "grep"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{' '.join(svc)} 'of main' | head -n 2"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "long.txt:1:line of main\nlong.txt:2:line of main\n"), done
    assert done.stderr == ""
    Path("long.txt").write_text("begin\n" + "a" * 60 + "b\n")
    slow = subprocess.Popen(
        [*svc, "begin|^(a+)+$"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment, "PYTHONUNBUFFERED": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert slow.stdout is not None
    lines = [slow.stdout.readline(), slow.stdout.readline()]
    assert lines[1] == "long.txt:1:begin\n", lines
    slow.send_signal(signal.SIGINT)
    out, err = slow.communicate(timeout=PATIENCE)
    assert (slow.returncode, out) == (130, "")
    assert re.search("^svc: interrupted", err)


def test_lines_around_a_match_are_printed_as_git_prints_them(folder: Svc) -> None:
    Path("README.md").write_text("1\n2 main\n3\n4\n5\n6 main\n7\n")
    assert folder("grep", "-C", "1", "main").out == (
        "README.md-1-1\nREADME.md:2:2 main\nREADME.md-3-3\n--\n"
        "README.md-5-5\nREADME.md:6:6 main\nREADME.md-7-7\n--\n"
        "src/main.py:1:def main():\nsrc/main.py-2-    return 4\nsrc/main.py-3-\n"
        "src/main.py:4:# no end: main\n"
    )
    assert folder("grep", "-A", "1", "-L", "1", "main").out == "README.md:2:2 main\nREADME.md-3-3\n"
    assert folder("grep", "-C", "1", "-A", "0", "6", "README.md").out == "README.md-5-5\nREADME.md:6:6 main\n"
    assert folder("grep", "-B", "1", "6", "README.md").out == "README.md-5-5\nREADME.md:6:6 main\n"
    for words in (("-l",), ("-c",), ("--json",)):
        told = folder("grep", "-C", "1", *words, "main")
        assert (told.code, "lines around a match" in told.err) == (2, True)
