"""What a file of rules for Syncthing means here, and that its user is told where that differs."""

from __future__ import annotations

import json

import pytest

from tests.svc.conftest import Svc
from tests.svc.flows.test_folder import write
from tests.svc.flows.test_large_files import made


@pytest.fixture
def full(alice: Svc) -> str:
    return made(alice, "app", "syncthing")


def test_case_is_ignored_where_a_line_says_so(alice: Svc, full: str) -> None:
    write(".stignore", "(?i)*.secret\n(?i)/Top/*.Env\n(?d)(?i)key?.TXT\n!(?i)KEEP.secret\n(?i)\u00c4rger\n")
    left_out = ["A.SECRET", "b.secret", "in/c.Secret", "top/x.env", "TOP/Y.ENV", "KEY1.txt", "\u00c4RGER"]
    kept = ["keep.SECRET", "in/top/z.env", "key12.txt", "\u00e4rger"]
    for path in (*left_out, *kept):
        write(path, path)
    listed = json.loads(alice("status", "--json", "new").out)["new"]
    assert sorted(listed) == sorted([".stignore", *kept])


def test_lines_that_syncthing_reads_otherwise_are_named_once(alice: Svc, full: str) -> None:
    write(".stignore", "#include .stglobal\n!early.pem\n*.pem\n!keep.pem\n!other.txt\n// !no.pem\n")
    for path in ("private.key", "keep.pem", "early.pem", "other.txt"):
        write(path, path)
    for words in (["status"], ["push", "--dry-run"], ["push", "-m", "one"]):
        told = alice(*words)
        assert told.code == 0
        lines = [line for line in told.err.splitlines() if "Syncthing" in line]
        assert [line.split(": ")[1] for line in lines] == [".stignore:1", ".stignore:2", ".stignore:4"], words
        assert "svc does not follow #include" in lines[0]
        assert "!early.pem does not bring back" in lines[1]
        assert "!keep.pem brings files back that Syncthing leaves out" in lines[2]
    write("another.txt", "x")
    assert "Syncthing" not in alice("status").err
    assert "Syncthing" not in alice("push", "-m", "two").err


def test_files_without_such_lines_are_not_spoken_of(alice: Svc, full: str) -> None:
    write(".stignore", "// mine\n*.pem\n!keep.txt\n(?d).DS_Store\n")
    write("a.txt", "x")
    assert "Syncthing" not in alice("push", "-m", "one").err
