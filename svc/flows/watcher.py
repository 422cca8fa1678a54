"""`svc watcher`: starts, finds and ends a watcher, which is a process that records which folders of a working
copy change."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from localstore.errors import NotWatchable
from localstore.folder.lock import how_to_end, living_holder
from localstore.home import Home
from localstore.watch import protocol
from localstore.watch.protocol import SOCKET_NAME, WatcherInfo
from localstore.watch.server import LOCK_NAME, LOG_NAME, watch
from localstore.watch.tree import WatcherEnded
from svc import UTF8_NAMES

FOREGROUND = ("watcher", "start", "--foreground")
LOOK_SECONDS = 0.05  # between two looks at a process that starts or ends
END_SECONDS = 10.0


def watch_in_foreground(
    folder: Path, record: Path, ready: Callable[[WatcherInfo], None], say: Callable[[str], None]
) -> str:
    """Watch the linked `folder` in this process. Returns the reason why the watching ended. `record` is the
    folder of its record. `ready` is called when the watcher can answer questions, `say` with messages. Raises
    NotWatchable."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end_by_signal)
    folder, record = folder.resolve(), record.resolve()
    os.chdir("/")  # a current folder would keep its file system mounted
    return watch(folder, record, ready, say)


def start(folder: Path, record: Path) -> tuple[WatcherInfo, bool]:
    """Start a watcher process in the background, if none is running, and wait until it answers. Returns its
    description, and whether it is new. Raises NotWatchable with the message of the process."""
    watcher = protocol.ask_info(record)
    if watcher is not None:
        return watcher, False
    log = record / LOG_NAME
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *UTF8_NAMES, "-P", "-m", "svc", *FOREGROUND],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=output,
            start_new_session=True,
        )
    try:
        while process.poll() is None:
            watcher = protocol.ask_info(record)
            if watcher is not None:
                ours = watcher.pid == process.pid
                if not ours:
                    _give_up(process)
                return watcher, ours
            time.sleep(LOOK_SECONDS)
    except KeyboardInterrupt:
        process.terminate()
        raise
    words = _last_words(log)
    until = time.monotonic() + protocol.CONTROL_SECONDS
    while time.monotonic() < until and not _has_ended(record):  # somebody else was starting one
        watcher = protocol.ask_info(record)
        if watcher is not None:
            return watcher, False
        time.sleep(LOOK_SECONDS)
    raise NotWatchable(words)


def _give_up(process: subprocess.Popen[bytes]) -> None:
    """End a watcher that this call has started while another watcher was running. Otherwise the new one would
    take over when the other one stops."""
    process.terminate()
    process.wait()


def stop(record: Path) -> WatcherInfo | None:
    """End the watcher of the working copy with this record, and wait for its end. Returns the watcher's
    description; None if no watcher was running. Raises NotWatchable if it does not answer."""
    watcher = protocol.ask_stop(record)
    if watcher is not None and watcher.live:
        raise NotWatchable("svc watch needs the watcher of this folder; to end both: svc watch stop")
    if watcher is None and not _has_ended(record):
        raise NotWatchable(f"the watcher does not answer; {how_to_end(record / LOCK_NAME)}")
    until = time.monotonic() + END_SECONDS
    while watcher is not None and not _has_ended(record):
        if time.monotonic() > until:
            raise NotWatchable(f"the watcher does not end; end it: kill -9 {watcher.pid}")
        time.sleep(LOOK_SECONDS)
    return watcher


def running_watchers(home: Home) -> list[WatcherInfo]:
    """Return the description of every watcher of this SVC_HOME that answers, sorted by folder."""
    records = [record for record, _ in home.records() if (record / SOCKET_NAME).exists()]
    answers = (protocol.ask_info(record) for record in records)
    return sorted((info for info in answers if info is not None), key=_folder)


def _end_by_signal(number: int, _frame: Any) -> None:
    raise WatcherEnded(f"told to end ({signal.Signals(number).name})")


def _folder(watcher: WatcherInfo) -> bytes:
    return watcher.folder


def _has_ended(record: Path) -> bool:
    return living_holder(record / LOCK_NAME) is None


def _last_words(log: Path) -> str:
    """Return the last non-empty line of a watcher's log, without the prefix `svc: `."""
    lines = log.read_text("utf-8", "replace").split("\n")
    words = next((line for line in reversed(lines) if line.strip()), "the watcher ended without a message")
    return words.removeprefix("svc: ")
