"""The lock of a working copy among real processes: waited for in order, and never held by the dead."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localstore.errors import CopyBusy, DiskError
from localstore.folder.lock import (
    QUEUE,
    AlreadyLocked,
    Holder,
    end_holder,
    held_files,
    hold_lock,
    holder,
    is_wanted,
    living_holder,
    own_working_copy,
)

# A process started in the background may ignore SIGINT, and so would its children.
HOLD = """
import signal, sys
from pathlib import Path
from localstore.folder.lock import own_working_copy
signal.signal(signal.SIGINT, signal.default_int_handler)
with own_working_copy(Path(sys.argv[1]), Path(sys.argv[1]).parent, sys.argv[2], 60):
    print("mine", flush=True)
    sys.stdin.readline()
print("done", flush=True)
"""


@contextmanager
def holding(lock: Path, command: str, wait: bool = True) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the lock, or waits for it, until a line is written to it."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock), command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        if wait:
            assert process.stdout.readline() == "mine\n"
        yield process
    finally:
        process.kill()
        process.wait()


def let_go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def in_line(lock: Path, count: int) -> None:
    """Return once so many wait."""
    while len(list(lock.with_name(QUEUE).glob("*"))) < count:
        os.sched_yield()


def test_who_gives_up_learns_which_command_holds_the_folder_and_since_when(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localstore.folder.lock.NOTIFIED_AFTER", 0.0)
    told: list[Holder] = []
    with holding(lock, "svc push") as other:
        found = holder(lock)
        assert (found.pid, found.command) == (other.pid, "svc push")
        with (
            pytest.raises(CopyBusy) as refused,
            own_working_copy(lock, lock.parent, seconds=0.2, waiting=told.append),
        ):
            pass
    assert f"svc push (process {other.pid}, since " in refused.value.detail
    assert f"kill {other.pid}" in refused.value.detail
    assert refused.value.extra == {"pid": other.pid, "since": found.since, "command": "svc push"}
    assert told == [found], "once, while it waited"
    assert not is_wanted(lock), "who gave up waits no more"


def test_who_waits_has_it_when_the_other_ends(lock: Path) -> None:
    with holding(lock, "svc push") as other:
        threading.Timer(0.1, let_go, [other]).start()
        with own_working_copy(lock, lock.parent, "svc pull"):
            assert holder(lock).command == "svc pull"
    assert holder(lock) == Holder(), "who has gone is not named"


def test_a_killed_process_holds_nothing_and_is_in_nobodys_way(lock: Path) -> None:
    with holding(lock, "svc push") as first, holding(lock, "svc pull", wait=False) as second:
        in_line(lock, 1)
        second.send_signal(signal.SIGKILL)
        second.wait()
        assert len(list(lock.with_name(QUEUE).iterdir())) == 1, "its place is still written down"
        first.send_signal(signal.SIGKILL)
        first.wait()
        with own_working_copy(lock, lock.parent, seconds=0):
            pass
    assert not list(lock.with_name(QUEUE).iterdir())


def test_the_lock_goes_to_who_waited_longest(lock: Path) -> None:
    order: list[str] = []

    def take(name: str) -> None:
        with own_working_copy(lock, lock.parent, name, 60):
            order.append(name)

    names = [f"waiter {number}" for number in range(8)]
    threads = [threading.Thread(target=take, args=(name,)) for name in names]
    with own_working_copy(lock, lock.parent):
        for number, thread in enumerate(threads, 1):
            thread.start()
            in_line(lock, number)
    for thread in threads:
        thread.join()
    assert order == names


def test_an_owner_that_comes_back_does_not_overtake_who_waits(lock: Path) -> None:
    """Whoever takes round after round, without a pause between them, has at most one more."""
    rounds, done = 0, threading.Event()

    def wait() -> None:
        with own_working_copy(lock, lock.parent, seconds=60):
            done.set()

    waiter = threading.Thread(target=wait)
    with own_working_copy(lock, lock.parent):
        waiter.start()
        in_line(lock, 1)
    while not done.is_set():
        with own_working_copy(lock, lock.parent, seconds=60):
            if not done.is_set():
                rounds += 1
    waiter.join()
    assert rounds <= 1


def test_nothing_is_lost_where_many_count_together(tmp_path: Path) -> None:
    """Four processes raise one number, each two hundred times."""
    count = """
import sys
from pathlib import Path
from localstore.folder.lock import own_working_copy
lock, number = Path(sys.argv[1]), Path(sys.argv[2])
for _ in range(200):
    with own_working_copy(lock, lock.parent, seconds=60):
        number.write_text(str(int(number.read_text()) + 1))
"""
    number = tmp_path / "number"
    number.write_text("0")
    words = [sys.executable, "-c", count, str(tmp_path / "lock"), str(number)]
    processes = [subprocess.Popen(words) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert number.read_text() == "800"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait_and_leaves_the_queue(lock: Path, number: int) -> None:
    with own_working_copy(lock, lock.parent), holding(lock, "svc pull", wait=False) as other:
        in_line(lock, 1)
        other.send_signal(number)
        assert other.wait(10) != 0
        assert not is_wanted(lock)


def test_a_file_system_without_locks_is_named(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(DiskError, match="the file system of SVC_HOME keeps no locks"),
        own_working_copy(lock, lock.parent),
    ):
        pass


def test_looking_at_a_lock_writes_nothing_and_lets_others_look(lock: Path) -> None:
    assert living_holder(lock) is None
    assert not lock.exists()
    with holding(lock, "svc push") as other:
        assert living_holder(lock) == other.pid
    words = lock.read_bytes()
    assert words
    with lock.open() as looked_at:
        fcntl.flock(looked_at, fcntl.LOCK_SH)
        assert living_holder(lock) is None
    assert lock.read_bytes() == words


def test_who_takes_a_lock_waits_for_those_who_look(lock: Path) -> None:
    lock.touch()
    with lock.open() as looked_at:
        fcntl.flock(looked_at, fcntl.LOCK_SH)
        with pytest.raises(AlreadyLocked), hold_lock(lock):
            pass
        letting_go = threading.Timer(0.1, fcntl.flock, (looked_at, fcntl.LOCK_UN))
        letting_go.start()
        with hold_lock(lock, "svc llm", 60):
            assert living_holder(lock) == os.getpid()
        letting_go.join()


def test_a_holder_is_ended(lock: Path) -> None:
    assert end_holder(lock, signal.SIGTERM, 0)
    with holding(lock, "svc push") as other:
        assert not end_holder(lock, signal.SIGCONT, 0.1)
        assert end_holder(lock, signal.SIGTERM, 60)
        assert other.wait() == -signal.SIGTERM


def test_a_folder_among_the_files_that_are_looked_at_is_passed_over(tmp_path: Path) -> None:
    """A backup or another program may have made it; it ended each command of the working copy."""
    lock = tmp_path / "lock"
    strange = tmp_path / QUEUE / "strange"
    strange.mkdir(parents=True)
    with own_working_copy(lock, tmp_path):
        assert held_files(strange.parent) == []
    assert strange.is_dir()
