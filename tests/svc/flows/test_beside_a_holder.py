"""Commands in a folder that another process keeps open and works in, round after round."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localstore.folder import lock
from localstore.folder.link import read_repo
from svc.flows.place.folder import rounds
from svc.flows.place.where import Where
from svc.flows.pull import pull
from svc.flows.status import status
from tests.patience import PATIENCE
from tests.svc.conftest import Svc

TIMES = 4


@contextmanager
def holding(folder: Path) -> Iterator[list[int]]:
    """Somebody pulls and looks in rounds that follow one another without a pause; how many there were."""
    done, counted, failed = threading.Event(), [0], list[BaseException]()

    def work() -> None:
        mine = rounds(Where(dict(os.environ), folder, command="holder"))
        try:
            while not done.is_set():
                with mine.round() as copy:
                    pull(copy, "merge") if counted[0] % 2 else status(copy, offline=True)
                    counted[0] += 1
        except BaseException as error:
            failed.append(error)
        finally:
            mine.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        while not counted[0] and not failed:
            time.sleep(0.01)
        yield counted
    finally:
        done.set()
        thread.join()
    assert not failed, failed


def test_commands_have_their_turn_and_the_holder_sees_what_they_did(
    alice: Svc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "PATIENCE", PATIENCE)  # the machine may be busy with other tests
    folder = tmp_path / "work"
    (folder / "a.txt").write_text("one\n")
    (folder / "b.txt").write_text("one\n")
    assert alice("repo", "create", "demo").code == 0
    assert alice("repo", "init", f"{os.environ['TEST_HANDLE']}/demo").code == 0
    assert alice("push", "-m", "First").code == 0
    assert alice("repo", "branch", "other").code == 0
    with holding(folder) as counted:
        for number in range(TIMES):
            (folder / "a.txt").write_text(f"edit {number}\n")
            for words in (
                ["status"],
                ["diff"],
                ["push", "-m", f"Edit {number}"],
                ["pull"],
                ["switch", "other"],
                ["switch", "main"],
            ):
                answer = alice(*words)
                assert answer.code == 0, (words, answer.err)
            (folder / "b.txt").write_text("by mistake\n")
            assert alice("restore", "b.txt").code == 0
            assert (folder / "b.txt").read_text() == "one\n"
        before = counted[0]
        while counted[0] < before + 2:
            time.sleep(0.01)
    assert (folder / "a.txt").read_text() == f"edit {TIMES - 1}\n"
    assert alice("status").out == ""
    assert counted[0] > TIMES
    assert not list(folder.glob("*.sync-conflict-*"))


def test_status_and_diff_do_not_wait_for_a_long_command(
    alice: Svc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localstore.sync.owning.LOOK_SECONDS", 0.05)
    folder = tmp_path / "work"
    (folder / "a.txt").write_text("one\n")
    assert alice("repo", "create", "demo2").code == 0
    assert alice("repo", "init", f"{os.environ['TEST_HANDLE']}/demo2").code == 0
    assert alice("push", "-m", "First").code == 0
    (folder / "a.txt").write_text("two\n")
    with rounds(Where(dict(os.environ), folder, command="svc push")).round():
        looked = alice("status")
        assert looked.code == 0
        assert "a.txt" in looked.out
        assert f"svc push (process {os.getpid()}, since " in looked.err
        assert "+two" in alice("diff").out
        monkeypatch.setattr(lock, "PATIENCE", 0.1)
        refused = alice("restore", "a.txt")
        assert (refused.code, refused.out) == (1, "")
        assert f"svc push (process {os.getpid()}, since " in refused.err
        assert "is working in" in refused.err
    assert "+two" in alice("diff").out


def test_a_rename_writes_no_link_while_another_process_works_in_the_folder(
    alice: Svc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    me, folder = os.environ["TEST_HANDLE"], tmp_path / "work"
    assert alice("repo", "create", "demo3").code == 0
    assert alice("repo", "init", f"{me}/demo3").code == 0
    monkeypatch.setattr(lock, "PATIENCE", 0.1)
    with rounds(Where(dict(os.environ), folder, command="svc watch")).round():
        renamed = alice("repo", "rename", "demo4")
        assert (renamed.code, renamed.out) == (0, f"{me}/demo4\n")
        assert read_repo(folder).repo == f"{me}/demo3"
    assert alice("repo", "rename", "demo5").code == 0
    assert read_repo(folder).repo == f"{me}/demo5"
