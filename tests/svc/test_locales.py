"""Names are bytes on the disk whatever the locale is, what a stream cannot hold is escaped, and what cannot
be printed makes no change fail."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest

from tests.svc.conftest import clean_environment

LATIN = "de_DE.ISO-8859-1"
Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture(scope="module")
def locales(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a locale whose encoding is not UTF-8."""
    made = tmp_path_factory.mktemp("locales")
    if shutil.which("localedef") is None:
        pytest.skip("no localedef to make a locale with")
    subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "ISO-8859-1", made / LATIN], check=False, capture_output=True
    )
    if not (made / LATIN).exists():
        pytest.skip("the sources of locales are not installed")
    return made


@pytest.fixture
def run(node: str, tmp_path: Path, request: pytest.FixtureRequest) -> Run:
    """Runs `svc` in a process of its own, in a linked folder with one sealed file."""
    folder = tmp_path / "work"
    folder.mkdir()

    def call(
        *words: str | bytes, code: int | None = 0, **settings: str
    ) -> subprocess.CompletedProcess[bytes]:
        environment = clean_environment(SVC_HOME=str(tmp_path / "home"), SVC_SERVER=node, **settings)
        done = subprocess.run(
            [sys.executable, "-P", "-m", "svc", *words],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
        assert code in (None, done.returncode), done.stderr.decode("utf-8", "replace")
        return done

    handle = f"l-{crc32(request.node.name.encode()):x}"
    call("login", "--device-key", "--handle", handle)
    call("repo", "create", "p")
    call("repo", "init", f"{handle}/p")
    (folder / "schön.txt").write_text("one\n", "utf-8")
    call("push", "-m", "One")
    return call


def test_a_locale_renames_nothing(run: Run, locales: Path, tmp_path: Path) -> None:
    spoken = {"LOCPATH": str(locales), "LC_ALL": LATIN}
    assert run("status", **spoken).stdout == b""
    (tmp_path / "work/schön.txt").write_text("two\n", "utf-8")
    (tmp_path / "work/über.txt").write_text("new\n", "utf-8")
    assert b"sch\xf6n.txt" in run("status", **spoken).stdout  # shown as this terminal shows it
    run("push", "-m", "größer".encode("iso-8859-1"), **spoken)
    log = json.loads(run("log", "--json", "message").stdout)
    assert [one["message"] for one in log] == ["größer", "One"]
    assert run("show", "main", "--name-only").stdout.decode().split()[-2:] == ["schön.txt", "über.txt"]
    assert run("show", "main:schön.txt", **spoken).stdout == b"two\n"
    (tmp_path / "work/schön.txt").unlink()
    run("restore", "schön.txt", **spoken)
    assert (tmp_path / "work/schön.txt").read_bytes() == b"two\n"


def test_the_agent_and_the_watcher_read_the_same_names(run: Run, locales: Path, tmp_path: Path) -> None:
    spoken = {"LOCPATH": str(locales), "LC_ALL": LATIN}
    try:
        run("watch", "--detach", **spoken)
        (tmp_path / "work/über.txt").write_text("new\n", "utf-8")
        run("push", "-m", "Two")
        assert run("show", "main", "--name-only").stdout.decode().split()[-2:] == ["Two", "über.txt"]
    finally:
        run("watch", "stop", "--all", code=None)


@pytest.mark.parametrize("encoding", ["ascii", "iso-8859-1", "ascii:strict"])
def test_what_a_stream_cannot_hold_is_escaped(run: Run, tmp_path: Path, encoding: str) -> None:
    (tmp_path / "work/schön ●.txt").write_text("●\n", "utf-8")
    for words in (["status"], ["diff"], ["status", "--json", "new"], ["push", "-m", "● made"], ["log"]):
        told = run(*words, PYTHONIOENCODING=encoding)
        assert b"Traceback" not in told.stderr
        assert b"something broke" not in told.stderr
    found = json.loads(run("log", "--json", "message", "-L", "1", PYTHONIOENCODING=encoding).stdout)
    assert found[0]["message"] == "● made"


def test_a_change_that_was_made_is_made_once(run: Run) -> None:
    run("label", "create", "ü", "-c", "00ff00", PYTHONIOENCODING="ascii")
    run("label", "create", "ü", "-c", "00ff00", PYTHONIOENCODING="ascii", code=1)


def test_no_room_for_the_answer_is_no_failure_of_the_change(run: Run, tmp_path: Path, node: str) -> None:
    environment = clean_environment(SVC_HOME=str(tmp_path / "home"), SVC_SERVER=node)
    words = [sys.executable, "-P", "-m", "svc", "label", "create"]
    for output, name in ((("/dev/full", None), "a"), ((None, "/dev/full"), "b"), (("/dev/full",) * 2, "c")):
        streams = [open(one, "w") if one else subprocess.PIPE for one in output]  # noqa: PTH123, SIM115
        done = subprocess.run(
            [*words, name, "-c", "00ff00"], cwd=tmp_path / "work", env=environment,
            stdout=streams[0], stderr=streams[1], check=False,
        )  # fmt: skip
        assert done.returncode == 0
        if output[1] is None:
            assert b"this was done: Created label a" in done.stderr
            assert b"No space left on device" in done.stderr
    assert [line.split(b"\t")[0] for line in run("label", "list").stdout.splitlines()] == [b"a", b"b", b"c"]


def test_a_closed_pipe_is_silent(run: Run, tmp_path: Path, node: str) -> None:
    environment = clean_environment(SVC_HOME=str(tmp_path / "home"), SVC_SERVER=node)
    for words in (["label", "create", "x", "-c", "00ff00"], ["label", "list"], ["--help"], ["--version"]):
        reads, writes = os.pipe()
        os.close(reads)
        done = subprocess.run(
            [sys.executable, "-P", "-m", "svc", *words], cwd=tmp_path / "work", env=environment,
            stdout=writes, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
        os.close(writes)
        assert done.returncode == 0, words
        assert b"Broken" not in done.stderr and b"svc:" not in done.stderr, words


def test_a_folder_whose_path_is_not_utf8(node: str, tmp_path: Path) -> None:
    folder = tmp_path / "caf\udce9"
    folder.mkdir()
    environment = clean_environment(SVC_HOME=str(tmp_path / "home"), SVC_SERVER=node)

    def svc(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "svc", *words], cwd=folder, env=environment,
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    svc("login", "--device-key", "--handle", "not-utf8")
    svc("repo", "create", "p")
    svc("repo", "init", "not-utf8/p")
    (folder / "a.txt").write_text("one\n")
    svc("push", "-m", "One")
    assert svc("status") == ""
    refused = subprocess.run(
        [sys.executable, "-P", "-m", "svc", "watch", "--detach"], cwd=folder, env=environment,
        stdin=subprocess.DEVNULL, capture_output=True, check=False,
    )  # fmt: skip
    svc("watch", "stop", "--all")
    assert refused.returncode == 1
    assert b"is not UTF-8" in refused.stderr
