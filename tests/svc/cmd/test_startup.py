"""What a command may import: start-up is kept cheap by import lists, not by timings."""

from __future__ import annotations

import subprocess
import sys

import pytest

from svc.cmd.frame.table import COMMANDS
from tests.svc.conftest import ROOT, clean_environment

PROBE = """
import sys
from svc.__main__ import answer
answer({words!r})
sys.stderr.write(",".join(sorted(sys.modules)))
"""


def loaded(*words: str) -> set[str]:
    """Every module in memory after `svc WORDS`."""
    ended = subprocess.run(
        [sys.executable, "-c", PROBE.format(words=list(words))],
        capture_output=True,
        text=True,
        env=clean_environment(SVC_HOME="/nonexistent"),
        cwd=ROOT,
        check=True,
    )
    return set(ended.stderr.rpartition("\n")[2].split(","))


def test_version_loads_nothing_to_speak_of() -> None:
    unwanted = {"typer", "httpx", "textual", "msgspec", "svc.cmd", "svc.console", "rich"}
    assert loaded("--version") & unwanted == set()


def test_help_asks_no_command_and_no_network() -> None:
    unwanted = {"httpx", "textual", "rich", "nacl", "svc.cmd.push", "svc.api"}
    assert loaded("--help") & unwanted == set()


def loaded_to_build(*paths: str) -> set[str]:
    """Every module in memory once these commands could run."""
    script = "import sys; from svc.cmd.frame.command import build\n"
    script += f"for path in {paths!r}: build(path)\n"
    script += "print(','.join(sorted(sys.modules)))"
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=clean_environment(),
        cwd=ROOT,
        check=True,
    )
    return set(ended.stdout.strip().split(","))


def test_no_command_loads_textual_the_relay_or_two_command_lines() -> None:
    assert len(COMMANDS) > 30
    unwanted = {"textual", "relay", "sanic", "httpx", "pydantic", "keyring", "jinja2", "jq", "rich"}
    assert loaded_to_build(*COMMANDS) & unwanted == set()


@pytest.mark.parametrize("path", ["push", "pull", "status", "log"])
def test_what_is_typed_all_day_loads_nothing_for_rare_cases(path: str) -> None:
    unwanted = {"ctypes", "dataclasses", "nacl.signing", "rapidfuzz", "shlex", "svc.console.pager", "tarfile"}
    unwanted |= {"svc.flows.pull"} if path == "push" else set()
    assert loaded_to_build(path) & unwanted == set()


@pytest.mark.parametrize("words", [("repo", "list", "a"), ("log", "-R", "a/b")])
def test_a_read_loads_httpx_without_its_command_line(words: tuple[str, ...]) -> None:
    modules = loaded(*words, "--server", "http://127.0.0.1:9")
    assert "httpx" in modules
    unwanted = {"rich", "pygments", "click", "keyring", "sanic", "textual", "jinja2", "jq", "pydantic"}
    assert modules & unwanted == set()


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("login", "--no-such")])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "> /dev/full"])
def test_a_closed_or_full_output_is_no_traceback(words: tuple[str, ...], closed: str) -> None:
    command = f'"{sys.executable}" -m svc {" ".join(words)} {closed}'
    ended = subprocess.run(
        ["/bin/sh", "-c", command],
        capture_output=True,
        text=True,
        env=clean_environment(SVC_HOME="/nonexistent"),
        cwd=ROOT,
    )
    assert "Traceback" not in ended.stderr
    assert ended.returncode == (2 if "login" in words else 1 if "full" in closed else 0)


def test_an_interruption_while_modules_are_imported_prints_no_traceback() -> None:
    script = """
import sys
import svc.__main__ as program

class Interrupting:
    def find_spec(self, name, *_):
        if name == "svc.cmd.frame.command":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
sys.argv = ["svc", "status"]
program.main()
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=clean_environment(), cwd=ROOT
    )
    assert (ended.returncode, ended.stderr) == (130, "svc: interrupted\n")
