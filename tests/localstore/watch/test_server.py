"""The watcher itself: what it hears, what it refuses, when it ends."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localstore.errors import NotWatchable
from localstore.watch import mounts, protocol
from localstore.watch.inotify import Inotify
from localstore.watch.protocol import Changes, WatcherToken
from localstore.watch.server import watch
from localstore.watch.tree import REMEMBERED, WatchedTree
from tests.localstore.watch.watching import watched
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[3]
ALONE = """
import sys
from pathlib import Path
from localstore.watch.server import watch
print(watch(Path(sys.argv[1]), Path(sys.argv[2]), lambda _: print("ready", flush=True), print))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder/.svc").mkdir(parents=True)
    return tmp_path / "folder"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    (tmp_path / "record").mkdir()
    return tmp_path / "record"


@contextmanager
def alone(folder: Path, record: Path, *before: str) -> Iterator[subprocess.Popen[str]]:
    """A watcher in a process of its own."""
    process = subprocess.Popen(
        [*before, sys.executable, "-c", ALONE, str(folder), str(record)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate()
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def now(record: Path) -> WatcherToken:
    found = protocol.ask_changes(record, None)
    assert found is not None
    return found.token


def since(record: Path, token: WatcherToken) -> Changes:
    found = protocol.ask_changes(record, token)
    assert found is not None
    return found


def test_tells_which_folders_changed(folder: Path, record: Path) -> None:
    (folder / "a/b").mkdir(parents=True)
    with watched(folder, record):
        token = now(record)
        assert since(record, token) == Changes(token, True, [], [])
        (folder / "a/x").write_text("1")
        assert since(record, token).files == [b"a/"]
        token = now(record)
        (folder / "new/deep").mkdir(parents=True)
        assert since(record, token).all == [b"new/"]
        token = now(record)
        (folder / "new/deep/y").write_text("1")
        assert since(record, token).files == [b"new/deep/"]


def test_knows_nothing_of_tokens_that_are_not_its_own(folder: Path, record: Path) -> None:
    with watched(folder, record):
        token = now(record)
        assert since(record, token).known
        for other in (
            WatcherToken(b"x" * 16, 0),
            WatcherToken(token.watcher, 99),
            WatcherToken(token.watcher, -1),
        ):
            assert not since(record, other).known
    with watched(folder, record):
        assert not since(record, token).known


def test_ignored_folders_and_links_are_not_watched(folder: Path, record: Path) -> None:
    for name in ("node_modules/a/b", "src/__pycache__", ".git/objects", "nested/.git", "nested/deep", "out"):
        (folder / name).mkdir(parents=True)
    (folder / "link").symlink_to(folder.parent)
    (folder / ".gitignore").write_text("out/\n")
    with watched(folder, record) as running:
        watching = protocol.ask_info(record)
        assert watching is not None
        assert (
            watching.directories == 3
        )  # the folder, src, and nested in case it is not a repository some day
        token = now(record)
        (folder / "node_modules/a/b/c").write_text("1")
        (folder / "link/elsewhere").write_text("1")
        (folder / "nested/deep/c").write_text("1")
        assert since(record, token) == Changes(token, True, [], [])
        (folder / ".gitignore").unlink()
        (folder / "out/c").write_text("1")
        assert since(record, token).all == [b""]
        shutil.rmtree(folder / "nested/.git")
        token = now(record)
        (folder / "nested/deep/c").write_text("2")
        assert since(record, token).files == [b"nested/deep/"]
        assert not running.ended


def test_after_too_many_events_it_knows_nothing_and_starts_over(folder: Path, record: Path) -> None:
    queue = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if queue > 100_000:
        pytest.skip("this machine remembers more events than a test should make")
    (folder / "a").mkdir()
    with alone(folder, record) as process:
        token = now(record)
        process.send_signal(signal.SIGSTOP)
        for number in range(queue + 10):
            (folder / "a" / str(number)).touch()
        (folder / "last/deep").mkdir(parents=True)
        process.send_signal(signal.SIGCONT)
        assert not since(record, token).known
        token = now(record)
        assert token.watcher
        (folder / "last/deep/x").touch()
        assert since(record, token).files == [b"last/deep/"]


def test_remembers_only_so_many_folders(folder: Path) -> None:
    for number in range(REMEMBERED + 1):
        (folder / f"d{number}").mkdir()
    inotify = Inotify()
    tree = WatchedTree(folder, inotify)
    begun = tree.serial
    for number in range(REMEMBERED + 1):
        (folder / f"d{number}/x").touch()
        if number % 1000 == 0:
            tree.process_events()
    tree.process_events()
    assert tree.since(begun) is None
    found = tree.since(tree.serial - 10)
    assert found is not None
    assert f"d{REMEMBERED}/" in found[0]
    inotify.close()


# --- who asks


def test_who_speaks_rubbish_or_not_at_all_holds_nobody_up(folder: Path, record: Path) -> None:
    with watched(folder, record) as running:
        for said in (b"", b"\xc1", b"x" * 100_000, protocol.ENCODE({"type": "since-1", "token": "?"})):
            with socket.socket(socket.AF_UNIX) as peer, protocol.socket_path(record) as path:
                peer.connect(path)
                try:
                    peer.sendall(said)
                    peer.shutdown(socket.SHUT_WR)
                    assert peer.recv(10) == b""
                except ConnectionError:
                    pass
        with socket.socket(socket.AF_UNIX) as silent, protocol.socket_path(record) as path:
            silent.connect(path)
            assert now(record)
        assert not running.ended


def test_the_socket_is_for_its_owner(folder: Path, record: Path) -> None:
    with watched(folder, record):
        assert (record / protocol.SOCKET_NAME).stat().st_mode & 0o777 == 0o600
    assert not (record / protocol.SOCKET_NAME).exists()


def test_long_paths_and_odd_names(tmp_path: Path) -> None:
    record = tmp_path / ("long" * 40) / ("longer" * 30)
    record.mkdir(parents=True)
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff\nname"))
    (folder / ".svc").mkdir(parents=True)
    with watched(folder, record):
        watching = protocol.ask_info(record)
        assert watching is not None
        assert watching.folder == os.fsencode(folder)
        token = now(record)
        Path(os.fsdecode(os.fsencode(folder) + b"/d\xfe")).mkdir()
        assert since(record, token).all == [b"d\xfe/"]


def test_one_watcher_for_a_folder(folder: Path, record: Path) -> None:
    with watched(folder, record) as running:
        with pytest.raises(NotWatchable, match=f"process {os.getpid()} watches .*folder already"):
            watch(folder, record, lambda _: None, lambda _: None)
        assert now(record)
        assert not running.ended


def test_a_killed_watcher_is_replaced(folder: Path, record: Path) -> None:
    with alone(folder, record) as process:
        token = now(record)
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    assert protocol.ask_changes(record, token) is None
    with watched(folder, record):
        assert not since(record, token).known


def test_a_copy_inside_another_has_a_watcher_of_its_own(folder: Path, record: Path, tmp_path: Path) -> None:
    (folder / "inner/.svc").mkdir(parents=True)
    (tmp_path / "inner-record").mkdir()
    with watched(folder, record), watched(folder / "inner", tmp_path / "inner-record"):
        outer, inner = now(record), now(tmp_path / "inner-record")
        (folder / "inner/d").mkdir()
        (folder / "inner/d/x").touch()
        assert since(tmp_path / "inner-record", inner).all == [b"d/"]
        assert since(record, outer) == Changes(outer, True, [], [])
        (folder / "inner/.svc").rename(folder / "inner/.svc-gone")
        assert since(record, outer).all == [b"inner/"]


# --- its end


def test_ends_when_the_folder_is_deleted_or_unlinked(folder: Path, record: Path) -> None:
    with watched(folder, record) as running:
        (folder / ".svc").rename(folder / ".svc-gone")
        assert running.over() == "the folder is not linked any more"
    (folder / ".svc-gone").rename(folder / ".svc")
    with watched(folder, record) as running:
        shutil.rmtree(folder)
        assert running.over() == "the folder is not linked any more"


def test_ends_when_the_folder_is_moved(folder: Path, record: Path, tmp_path: Path) -> None:
    with watched(folder, record) as running:
        folder.rename(tmp_path / "elsewhere")
        assert running.over() == "the folder was moved or deleted"
    (tmp_path / "above").mkdir()
    (tmp_path / "elsewhere").rename(tmp_path / "above/folder")
    with watched(tmp_path / "above/folder", record) as running:
        (tmp_path / "above").rename(tmp_path / "renamed")
        assert protocol.ask_changes(record, None) is None
        assert running.over() == "the folder was moved or deleted"


def test_ends_when_nobody_can_reach_it(folder: Path, record: Path) -> None:
    with watched(folder, record) as running:
        (record / protocol.SOCKET_NAME).unlink()
        assert running.over() == "its socket was removed"


def test_says_when_the_system_allows_no_more(folder: Path, record: Path) -> None:
    for number in range(20):
        (folder / f"d{number}").mkdir()
    limited = 'echo 8 > /proc/sys/user/max_inotify_watches && exec "$@"'
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", limited, "sh"]
    if subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("this system lets nobody lower the limit for a test")
    ended = subprocess.run(
        [*command, sys.executable, "-c", ALONE, str(folder), str(record)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert "NotWatchable: the system lets a user watch" in ended.stderr
    assert "sudo sysctl fs.inotify.max_user_watches=" in ended.stderr


def test_sleeps_while_nothing_happens(folder: Path, record: Path) -> None:
    with alone(folder, record) as process:
        (folder / "x").touch()
        now(record)
        while not _waits_for_ever(process.pid):
            assert process.poll() is None


def _waits_for_ever(pid: int) -> bool:
    """Whether the process sleeps in a call that has −1 for its time, its third argument."""
    words = Path(f"/proc/{pid}/syscall").read_text().split()
    return len(words) > 3 and words[3].endswith("ffffffff")


# --- where it does not watch

TABLE = rb"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home/ann/remote rw - nfs4 server:/x rw
31 22 0:41 / /home/ann/over\040ssh rw - fuse.sshfs x: rw
32 22 0:42 / /mnt/host rw - 9p host rw
33 22 0:43 / /home/ann/work/data rw - ext4 /dev/sdb1 rw
34 22 0:44 / /home/ann/twice rw - cifs //x rw
35 34 0:45 / /home/ann/twice rw - xfs /dev/sdc rw
36 22 0:46 / /home/ann/odd\134name rw - nfs x rw
broken
"""


@pytest.mark.parametrize("folder", ["/home/ann/mine", "/home/ann/remoteness", "/home/ann/twice/a", "/"])
def test_file_systems_of_this_machine_are_watched(folder: str) -> None:
    table = TABLE if folder != "/" else TABLE.splitlines()[1]
    mounts.check(Path(folder), table)


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("/home/ann/remote/a", "nfs4"),
        ("/home/ann/remote", "nfs4"),
        ("/home/ann/over ssh/a", "fuse.sshfs"),
        ("/mnt/host", "9p"),
        ("/home/ann/odd\\name/a", "nfs"),
        ("/home/ann/work", "mounted at /home/ann/work/data"),
    ],
)
def test_where_events_cannot_be_relied_on_nothing_is_watched(folder: str, why: str) -> None:
    with pytest.raises(NotWatchable, match=why.replace("\\", "\\\\")):
        mounts.check(Path(folder), TABLE)
    with pytest.raises(NotWatchable, match="unknown"):
        mounts.check(Path(folder), b"")
