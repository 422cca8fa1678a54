"""`svc watch` with real agents and a real relay."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from scripts.live.devices import Device, Relay
from svc.http.session import Sessions
from tests.depth import rounds
from tests.patience import PATIENCE, until
from tests.svc.agent.pair import devices as devices
from tests.svc.agent.pair import relay as relay


@pytest.fixture
def watched(devices: tuple[Device, Device]) -> tuple[Device, Device]:
    for device in devices:
        device.svc("watch", "--detach")
        device.wait_for("live")
    return devices


def _heed_interrupts() -> None:
    """What a shell in the background starts ignores SIGINT otherwise."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_a_save_reaches_the_other_disk_and_is_told_of(watched: tuple[Device, Device]) -> None:
    first, second = watched
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "svc", "watch", "--json", "event,path,by,lines"],
        cwd=second.folder,
        env=second.environment,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=_heed_interrupts,
    )
    assert process.stdout is not None
    until(lambda: json.loads(second.svc("watch", "list", "--json", "followers"))[0]["followers"])
    (first.folder / "new.txt").write_text("new\n")
    until(lambda: (second.folder / "new.txt").exists())
    for line in process.stdout:
        said = json.loads(line)
        if said["event"] == "came":
            assert (said["path"], said["by"]) == ("new.txt", "ann")
            break
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 130
    assert second.state()["light"] == "live"  # it is detached and stays


def test_a_seal_of_one_device_is_the_others_too(watched: tuple[Device, Device]) -> None:
    first, second = watched
    (first.folder / "sealed.txt").write_text("one\n")
    seal = first.svc("push", "-m", "Two").strip()
    until(lambda: json.loads(second.svc("status", "--json", "last_seal"))["last_seal"] == seal)
    (second.folder / "sealed.txt").write_text("two\n")
    second.svc("push", "-m", "Three")
    until(lambda: (first.folder / "sealed.txt").read_text() == "two\n")


def test_an_editor_that_never_reloads_takes_nothing_away(watched: tuple[Device, Device]) -> None:
    first, second = watched
    loaded = (second.folder / "a.txt").read_text()
    text = (first.folder / "a.txt").read_text()
    (first.folder / "a.txt").write_text(text.replace("line 2", "by first"))
    until(lambda: "by first" in (second.folder / "a.txt").read_text())
    (second.folder / "a.txt").write_text(loaded.replace("line 7", "by second"))
    for device in watched:
        until(lambda: "by second" in (device.folder / "a.txt").read_text())  # noqa: B023
        until(lambda: "by first" in (device.folder / "a.txt").read_text())  # noqa: B023


def test_the_relay_goes_and_comes_and_no_edit_is_lost(watched: tuple[Device, Device], relay: Relay) -> None:
    first, second = watched
    relay.kill()
    first.wait_for("offline")
    (first.folder / "offline.txt").write_text("written without a relay\n")
    (second.folder / "also.txt").write_text("by the other\n")
    relay.start()
    until(lambda: (second.folder / "offline.txt").exists())
    until(lambda: (first.folder / "also.txt").exists())
    first.wait_for("live")


def test_what_is_saved_twice_removed_or_renamed_while_the_relay_is_away_arrives(
    watched: tuple[Device, Device], relay: Relay
) -> None:
    """Live with nothing queued means that the disk is the frontier, of bytes as well."""
    first, second = watched
    names = ("twice.bin", "gone.bin", "gone.txt", "old.bin", "old.txt")
    start = {name: b"\0" * name.endswith(".bin") + b"start\n" for name in names}
    for name, data in start.items():
        (first.folder / name).write_bytes(data)
    until(lambda: all((second.folder / name).exists() for name in names))
    relay.kill()
    first.wait_for_queue(0)
    for number, (name, data) in enumerate(start.items(), 1):
        (first.folder / name).write_bytes(data + b"in flight\n")
        first.wait_for_queue(number)
    (first.folder / "twice.bin").write_bytes(b"\0 the last\n")
    for name in ("gone.bin", "gone.txt"):
        (first.folder / name).unlink()
    for end in (".bin", ".txt"):
        (first.folder / f"old{end}").rename(first.folder / f"new{end}")
    first.wait_for_queue(7)
    relay.start()
    until(lambda: (second.folder / "twice.bin").read_bytes() == b"\0 the last\n")
    until(lambda: not any((second.folder / name).exists() for name in names[1:]))
    for end in (".bin", ".txt"):
        until((second.folder / f"new{end}").exists)
        assert (second.folder / f"new{end}").read_bytes() == start[f"old{end}"] + b"in flight\n"
    for device in watched:
        device.wait_for("live")


def test_an_agent_that_was_killed_is_started_again(watched: tuple[Device, Device]) -> None:
    first, second = watched
    first.end_agent(signal.SIGKILL)
    (first.folder / "meanwhile.txt").write_text("no agent\n")
    assert first.svc("watch", "list") == ""
    first.svc("watch", "--detach")
    until(lambda: (second.folder / "meanwhile.txt").exists())


def test_the_watcher_is_part_of_it(watched: tuple[Device, Device]) -> None:
    first, _ = watched
    listed = json.loads(first.svc("watcher", "list", "--json", "pid"))
    assert listed == [{"pid": first.agent_pid()}]
    assert "svc watch stop" in _refused(first, "watcher", "stop")
    (first.folder / "seen.txt").write_text("x\n")
    assert "seen.txt" in first.svc("status")


def test_one_agent_for_each_home(watched: tuple[Device, Device]) -> None:
    first, _ = watched
    second_agent = subprocess.run(
        [sys.executable, "-P", "-m", "svc.agent", str(first.home)], env=first.environment, check=False
    )
    assert second_agent.returncode == 3
    assert os.getsid(first.agent_pid() or 0) == first.agent_pid()  # it has no terminal


def test_stop_and_refusals(watched: tuple[Device, Device], tmp_path: Path) -> None:
    first, _ = watched
    assert "not linked" in _refused(first, "watch", where=tmp_path)
    first.svc("watch", "stop")
    assert first.state() == {}
    assert "run: svc watch" in _refused(first, "watch", "stop")
    assert first.svc("watch", "stop", "--all") == ""
    first.end_agent()
    assert "run: svc watch" in _refused(first, "watch", "stop")
    first.svc("watch", str(first.folder), "--detach", where=tmp_path)
    first.wait_for("live")


def _branch(device: Device) -> str:
    branch: str = json.loads(device.svc("watch", "list", "--json", "branch"))[0]["branch"]
    return branch


def _refused(device: Device, *words: str, where: Path | None = None, code: int = 1) -> str:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "svc", *words],
        cwd=where or device.folder,
        env=device.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    return done.stderr


def test_a_protected_branch_is_told_of_once_and_the_edit_stays(watched: tuple[Device, Device]) -> None:
    first, second = watched
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "svc", "watch", "--json", "event,detail"],
        cwd=first.folder,
        env=first.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    until(lambda: json.loads(first.svc("watch", "list", "--json", "followers"))[0]["followers"])
    first.svc("repo", "protect", "set", "main", "--require-review")
    (first.folder / "barred.txt").write_text("kept\n")
    until(lambda: "protected" in json.loads(first.svc("watch", "list", "--json", "why"))[0]["why"])
    assert "protected" in _refused(first, "watch", "list", code=0)
    time.sleep(rounds(3, 8))
    assert (first.folder / "barred.txt").read_text() == "kept\n"
    assert not (second.folder / "barred.txt").exists()
    first.svc("repo", "protect", "clear", "main", "--yes")
    until(lambda: (second.folder / "barred.txt").exists())
    until(lambda: not first.state()["why"], "the reason goes with the rule")
    process.terminate()
    said = [json.loads(line) for line in process.stdout]
    process.wait()
    told = [one["detail"] for one in said if one["event"] == "trouble" and "protected" in one["detail"]]
    assert len(told) == 1 and "svc switch NAME --merge" in told[0]


def test_edits_that_a_protected_branch_refused_are_sent_on_another(
    watched: tuple[Device, Device],
) -> None:
    first, _ = watched
    first.svc("repo", "protect", "set", "main", "--require-review")
    (first.folder / "taken.txt").write_text("kept\n")
    until(lambda: "protected" in first.state()["why"])
    first.svc("repo", "branch", "own", "--from", "main")
    first.svc("switch", "own", "--merge")
    until(lambda: not first.state()["why"])
    until(lambda: not first.state()["queued"])
    first.svc("push", "-m", "Taken")
    first.svc("repo", "protect", "clear", "main", "--yes")
    first.svc("switch", "main")


def test_a_folder_that_shows_a_seal_says_that_saves_wait(watched: tuple[Device, Device]) -> None:
    first, second = watched
    (first.folder / "seen.txt").write_text("sealed\n")
    first.svc("push", "-m", "For a look")
    shown = json.loads(first.svc("log", "--json", "id", "-n", "1"))[0]["id"]
    first.svc("switch", shown)
    (first.folder / "looked.txt").write_text("waits\n")
    until(lambda: f"shows the seal {shown[:12]}" in first.state()["why"])
    assert "svc switch main returns to the branch" in _refused(first, "watch", "list", code=0)
    time.sleep(rounds(1, 4))
    assert not (second.folder / "looked.txt").exists()
    first.svc("switch", "main")
    until((second.folder / "looked.txt").exists, "what waited is sent on the branch")
    until(lambda: not first.state()["why"])


def test_a_switch_to_a_branch_with_the_same_files_is_followed_at_once(watched: tuple[Device, Device]) -> None:
    first, second = watched
    first.svc("push", "-m", "One state")
    first.svc("repo", "branch", "aside")
    for device in watched:
        device.svc("switch", "aside")
    until(lambda: _branch(first) == _branch(second) == "aside")
    (second.folder / "aside.txt").write_text("on the new branch\n")
    until((first.folder / "aside.txt").exists, "the first hears the new branch, without a save of its own")
    for device in watched:
        device.svc("switch", "main", "--force")
    until(lambda: not (first.folder / "aside.txt").exists())


def test_a_turn_gets_one_checkpoint_and_ends_with_its_watch(
    watched: tuple[Device, Device], relay: Relay
) -> None:
    first, second = watched
    data = relay._base / "data"
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "svc", "watch", "--json", "event"],
        cwd=first.folder,
        env={**first.environment, "SVC_TURN": "turn-7"},
        stdout=subprocess.DEVNULL,
        preexec_fn=_heed_interrupts,
    )
    until(lambda: json.loads(first.svc("watch", "list", "--json", "followers"))[0]["followers"])
    for name in ("turn-a.txt", "turn-b.txt"):
        (first.folder / name).write_text("by an agent\n")
        until((second.folder / name).exists)
    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE)
    until(lambda: not json.loads(first.svc("watch", "list", "--json", "followers"))[0]["followers"])
    (first.folder / "turn-c.txt").write_text("by a person\n")
    until((second.folder / "turn-c.txt").exists)
    database = sqlite3.connect(f"file:{next(data.rglob('*.db'))}?mode=ro", uri=True)
    with closing(database):
        marks = database.execute("SELECT turn_id FROM checkpoint WHERE reason = 'turn'").fetchall()
        turns = database.execute("SELECT turn FROM event WHERE kind = 'live' ORDER BY id").fetchall()
    assert marks == [("turn-7",)]
    assert turns[-3:] == [("turn-7",), ("turn-7",), (None,)]


DEAF = """
import sys
from contextlib import closing
from pathlib import Path
from localstore.errors import NotWatchable
from localstore.home import Home
from svc.agent import process, saves
from tests.patience import PATIENCE

def deaf(*_):
    raise NotWatchable("as on a network mount")

saves.watch, saves.WALK_OFTEN = deaf, float(sys.argv[2])
if sys.argv[3] == "walk":  # and nothing is heard of
    saves.SaveDetector._report_changes = lambda self: self._ready.set()
process.serve(Home(Path(sys.argv[1])))
"""


@pytest.mark.parametrize(("way", "every"), [("watchfiles", "600"), ("walk", "0.5")])
def test_without_an_inotify_tree_others_hear_and_a_walk_finds_the_rest(
    watched: tuple[Device, Device], way: str, every: str
) -> None:
    first, second = watched
    first.end_agent()
    agent = subprocess.Popen(
        [sys.executable, "-P", "-c", DEAF, str(first.home), every, way], env=first.environment, cwd="/"
    )
    try:
        until(lambda: first.svc("watch", "list"))
        first.wait_for("live")
        assert json.loads(first.svc("watch", "list", "--json", "walks")) == [{"walks": True}]
        (first.folder / way).mkdir()
        (first.folder / way / "deep.txt").write_text("one\n")
        until((second.folder / way / "deep.txt").exists)
        (first.folder / way / "deep.txt").write_text("two\n")
        until(lambda: (second.folder / way / "deep.txt").read_text() == "two\n")
        fresh = first.folder / way / ".deep.swp"
        fresh.write_text("three\n")
        fresh.replace(first.folder / way / "deep.txt")
        until(lambda: (second.folder / way / "deep.txt").read_text() == "three\n")
        (first.folder / way / "deep.txt").unlink()
        until(lambda: not (second.folder / way / "deep.txt").exists())
    finally:
        agent.terminate()
        agent.wait(PATIENCE)


def test_what_cannot_be_carried_removes_nothing_of_others(
    watched: tuple[Device, Device], tmp_path: Path
) -> None:
    first, second = watched
    (first.folder / "data").mkdir()
    for path in ("data/1", "plain.txt"):
        (first.folder / path).write_text(f"{path}\n")
    until(lambda: (second.folder / "data/1").exists() and (second.folder / "plain.txt").exists())
    (first.folder / "data").rename(tmp_path / "disk")
    (first.folder / "data").symlink_to(tmp_path / "disk")
    (first.folder / "plain.txt").rename(first.folder / "pl\udce4in.txt")
    seal = first.svc("push", "-m", "Two").strip()
    until(lambda: json.loads(second.svc("status", "--json", "last_seal"))["last_seal"] == seal)
    assert (second.folder / "data/1").read_text() == "data/1\n"
    assert (second.folder / "plain.txt").read_text() == "plain.txt\n"
    assert first.state()["light"] == "live"


def test_saves_in_an_ignored_folder_travel_if_its_file_is_tracked(watched: tuple[Device, Device]) -> None:
    first, second = watched
    for device in watched:
        device.svc("watch", "stop")
    (first.folder / "build").mkdir()
    (first.folder / "build/by-svc.txt").write_text("one\n")
    (first.folder / ".svcignore").write_text("!build/by-svc.txt\n")
    first.svc("push", "-m", "With a built file")
    (first.folder / ".svcignore").write_text("")
    first.svc("push", "-m", "Without its rule")
    for device in watched:
        device.svc("watch", "--detach")
        device.wait_for("live")
    until(lambda: (second.folder / "build/by-svc.txt").exists())
    for text in ("two\n", "three\n"):
        (first.folder / "build/by-svc.txt").write_text(text)
        (first.folder / "build/other.txt").write_text(text)
        until(lambda: (second.folder / "build/by-svc.txt").read_text() == text)  # noqa: B023
    assert not (second.folder / "build/other.txt").exists()


def test_a_raised_cap_lets_large_files_travel_and_a_lowered_one_removes_none(
    watched: tuple[Device, Device],
) -> None:
    first, second = watched
    manifest, large = first.folder / ".svc.yaml", first.folder / "large.bin"
    large.write_bytes(bytes(17 << 20))
    (first.folder / "small.bin").write_bytes(bytes(3))
    until(lambda: (second.folder / "small.bin").exists())
    manifest.write_text("kind: app\nlimits: {max_file_mib: 20}\n")
    until(lambda: (second.folder / "large.bin").exists())
    large.rename(first.folder / "moved.bin")
    until(lambda: (second.folder / "moved.bin").exists() and not (second.folder / "large.bin").exists())
    manifest.unlink()
    until(lambda: not (second.folder / ".svc.yaml").exists())
    (first.folder / "moved.bin").rename(first.folder / "again.bin")
    (first.folder / "a.txt").rename(first.folder / "renamed.txt")
    until(lambda: (second.folder / "renamed.txt").exists() and not (second.folder / "a.txt").exists())
    assert (second.folder / "moved.bin").stat().st_size == 17 << 20
    (first.folder / "renamed.txt").rename(first.folder / "a.txt")
    (first.folder / "small.bin").unlink()
    (first.folder / "again.bin").unlink()
    first.svc("push", "-m", "What is left")
    until(lambda: not (second.folder / "moved.bin").exists())


def test_what_cannot_be_sent_is_named_when_it_appears(watched: tuple[Device, Device]) -> None:
    first, _ = watched
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "svc", "watch", "--json", "event,path,detail"],
        cwd=first.folder,
        env=first.environment,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=_heed_interrupts,
    )
    assert process.stdout is not None
    until(lambda: json.loads(first.svc("watch", "list", "--json", "followers"))[0]["followers"])
    (first.folder / "huge.bin").write_bytes(bytes(17 << 20))
    (first.folder / "new-link").symlink_to("a.txt")
    left = {"huge.bin": "over the size cap", "new-link": "symlink"}
    for line in process.stdout:
        said = json.loads(line)
        if said["event"] == "skipped" and said["path"] in left:
            assert left.pop(said["path"]) in said["detail"]
        if not left:
            break
    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE)
    for name in ("huge.bin", "new-link"):
        (first.folder / name).unlink()


def test_an_emptied_folder_is_asked_about(watched: tuple[Device, Device]) -> None:
    first, second = watched
    names = [f"many{number}.txt" for number in range(150)]
    for name in names:
        (first.folder / name).write_text("same\n")
    until(lambda: all((second.folder / name).exists() for name in names))
    first.svc("push", "-m", "Many")
    files = sum(path.is_file() and ".svc" not in path.parts for path in first.folder.rglob("*"))
    for name in names:
        (first.folder / name).unlink()
    # On a busy machine those that are judged before more than half is gone are sent.
    held = len(names) - files // 2
    until(lambda: "files are gone here" in first.state()["why"])
    assert json.loads(first.svc("watch", "list", "--json", "queued"))[0]["queued"] >= held
    (first.folder / "other.txt").write_text("goes on\n")
    until(lambda: (second.folder / "other.txt").exists())
    assert sum((second.folder / name).exists() for name in names) >= held
    assert "to confirm" in _refused(first, "push", "-m", "Gone", code=2)
    first.svc("push", "-m", "Gone", "--yes")
    until(lambda: not any((second.folder / name).exists() for name in names))
    until(lambda: json.loads(first.svc("watch", "list", "--json", "queued"))[0]["queued"] == 0)


def test_what_others_save_arrives_again_after_the_repository_was_restored(
    watched: tuple[Device, Device],
) -> None:
    first, second = watched
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "svc", "watch", "--json", "event,detail"],
        cwd=second.folder,
        env=second.environment,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=_heed_interrupts,
    )
    until(lambda: json.loads(second.svc("watch", "list", "--json", "followers"))[0]["followers"])
    repo_id = json.loads((first.folder / ".svc" / "repo.json").read_text())["repo_id"]
    first.svc("repo", "delete", "ann/app", "--yes")
    for device in watched:
        until(lambda: "deleted, or is hidden" in device.state()["why"], "the watch says why")  # noqa: B023
    first.svc("repo", "restore", repo_id)
    for device in watched:
        until(lambda: not device.state()["why"], "the watch goes on")  # noqa: B023
    for giver, taker in (watched, watched[::-1]):
        name = f"from {giver.name}.txt"
        (giver.folder / name).write_text("after\n")
        until(lambda: (taker.folder / name).exists(), f"{name} arrives")  # noqa: B023
    process.send_signal(signal.SIGINT)
    told = [json.loads(line) for line in process.communicate()[0].splitlines()]
    reasons = [event["detail"] for event in told if event["event"] == "trouble"]
    assert reasons
    assert all(reasons)


def _session_ids(device: Device) -> dict[str, bool]:
    """The sessions of the account, and whether each is that of this device."""
    rows = json.loads(device.svc("auth", "token", "list", "--json", "id,current"))
    return {row["id"]: row["current"] for row in rows}


def test_a_session_that_somebody_ended_is_not_renewed_and_one_that_ran_out_is(
    watched: tuple[Device, Device],
) -> None:
    first, second = watched
    ended = next(session_id for session_id, current in _session_ids(second).items() if current)
    before = _session_ids(first).keys()
    first.svc("auth", "token", "revoke", ended, "--yes")
    until(lambda: "session has ended" in second.state()["why"], "the watch says why")
    (second.folder / "after.txt").write_text("not sent\n")
    until(lambda: second.state()["queued"], "the edit waits")
    assert _session_ids(first).keys() == before - {ended}
    second.svc("login", "--device-key", "--handle", "ann")
    until(lambda: (first.folder / "after.txt").exists(), "the edit arrives")

    second.end_agent()
    sessions = Sessions(second.home)
    session = sessions.find(second.environment["SVC_SERVER"])
    assert session is not None
    sessions.save(msgspec.structs.replace(session, expires_at="2020-01-01T00:00:00Z"))
    second.svc("watch", "--detach")
    second.wait_for("live")
    assert _session_ids(second).keys() > before - {ended}


def test_a_watch_that_began_while_the_repository_was_archived_sends_when_it_may(
    watched: tuple[Device, Device],
) -> None:
    first, second = watched
    (second.folder / "unsealed.txt").write_text("on the branch, in no seal\n")
    until(lambda: (first.folder / "unsealed.txt").exists())
    second.svc("watch", "stop")
    first.svc("repo", "archive", "--yes")
    try:
        second.svc("watch", "--detach")
        second.wait_for("live")
        (second.folder / "kept.txt").write_text("saved meanwhile\n")
        until(lambda: "archived" in json.loads(second.svc("watch", "list", "--json", "why"))[0]["why"])
        assert (second.folder / "unsealed.txt").exists()
    finally:
        first.svc("repo", "unarchive")
    until(lambda: (first.folder / "kept.txt").exists())
    until(lambda: not json.loads(second.svc("watch", "list", "--json", "why"))[0]["why"])
    assert (second.folder / "unsealed.txt").exists()


def test_a_watch_whose_folder_is_moved_away_says_so_and_ends(watched: tuple[Device, Device]) -> None:
    second = watched[1]
    second.svc("watch", "stop")
    moved = second.folder.with_name("moved")
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "svc", "watch", "--json", "event,detail"],
            cwd=second.folder,
            env=second.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        until(lambda: "1" in second.svc("watch", "list", "--json", "followers"))
        second.folder.rename(moved)
        try:
            said, noted = process.communicate(timeout=PATIENCE)
        finally:
            moved.rename(second.folder)
        last = json.loads(said.splitlines()[-1])
        assert last == {"event": "ended", "detail": "the folder was moved or deleted"}
        assert "starting it again" not in noted
        assert process.returncode == 0
    second.svc("watch", "--detach")
