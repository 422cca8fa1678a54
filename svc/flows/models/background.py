"""Pulls models in the background, for programs that do not wait for them. For each pull there is a folder:

SVC_HOME/downloads/<digest of the name>/
    lock          held by the process that pulls, until it ends
    state.json    its progress"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from localstore.core.errors import SvcError, UsageError
from localstore.folder.lock import LOOKED_SECONDS, AlreadyLocked, end_holder, hold_lock, living_holder
from localstore.models import store
from localstore.models.errors import ModelMissing
from localstore.models.names import ModelName, parse
from localstore.models.place import llm_home
from localstore.models.store import Models
from svc import UTF8_NAMES
from svc.flows.models.fetching import PullStep
from svc.flows.models.pull import pull
from svc.flows.place.where import Where

PROGRAM = "svc.flows.models.background"
LOCK, STATE = "lock", "state.json"
FIRST_SECONDS = 20.0  # until a new pull says something
END_SECONDS = 20.0
_LOOK, _REPORT = 0.05, 0.2


class Download(msgspec.Struct, kw_only=True):
    """A pull in the background. `state` is `none` if the model is not being pulled and is not installed. It
    is `failed` if the pull failed, for the reason `detail`. `completed` and `total` count bytes of the
    current file. `known` counts the bytes of that file that this machine already had."""

    name: str
    state: Literal["none", "pulling", "done", "failed"] = "none"
    pid: int | None = None
    completed: int = 0
    total: int = 0
    known: int = 0
    detail: str | None = None


def start(home: Path, name: ModelName, environment: Mapping[str, str], server: str | None) -> Download:
    """Start a process that pulls a model, unless one is already running. Returns the state of the pull.
    `server` is the server to pull from, or None for the default server."""
    folder = _folder(home, name)
    if living_holder(folder / LOCK) is None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write(folder, Download(name=name.short, state="pulling"))
        variables = {**environment, "SVC_HOME": str(home.absolute())}
        process = subprocess.Popen(
            [sys.executable, *UTF8_NAMES, "-P", "-m", PROGRAM, str(name)],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**variables, "SVC_SERVER": server} if server else variables,
            start_new_session=True,
        )
        end = time.monotonic() + FIRST_SECONDS
        while time.monotonic() < end and living_holder(folder / LOCK) is None and process.poll() is None:
            time.sleep(_LOOK)
    return state_of(home, name, Models(llm_home(environment)))


def cancel(home: Path, name: ModelName, models: Models) -> Download:
    """End the process that pulls a model. Returns the state afterwards. Received bytes are kept for a later
    pull."""
    end_holder(_folder(home, name) / LOCK, signal.SIGTERM, END_SECONDS)
    return state_of(home, name, models)


def state_of(home: Path, name: ModelName, models: Models) -> Download:
    folder = _folder(home, name)
    try:
        download = msgspec.json.decode((folder / STATE).read_bytes(), type=Download)
    except (OSError, msgspec.MsgspecError):
        download = Download(name=name.short)
    download.pid = living_holder(folder / LOCK)
    if download.pid is not None:
        download.state = "pulling"
    elif download.state != "failed":
        download.state = "done" if _is_here(models, name) else "none"
    return download


def downloads(home: Path, models: Models) -> list[Download]:
    """Return the running pulls of this SVC_HOME, and the failed ones whose model is still not installed."""
    states = []
    for file in sorted((home.absolute() / "downloads").glob(f"*/{STATE}")):
        try:
            name = parse(msgspec.json.decode(file.read_bytes(), type=Download).name)
        except (OSError, msgspec.MsgspecError, UsageError):
            continue
        state = state_of(home, name, models)
        if state.state == "pulling" or (state.state == "failed" and not _is_here(models, name)):
            states.append(state)
    return states


def forget(home: Path, name: ModelName) -> None:
    """Delete the state of a failed pull, so that it is no longer listed. A running pull is not affected."""
    folder = _folder(home, name)
    if living_holder(folder / LOCK) is None:
        (folder / STATE).unlink(missing_ok=True)


def _is_here(models: Models, name: ModelName) -> bool:
    try:
        models.find(name)
    except ModelMissing:
        return False
    return True


def main() -> int:
    """Pull a model, as `python -m svc.flows.models.background NAME`. Returns the exit code."""
    name = parse(sys.argv[1])
    where = Where(os.environ, Path("/"), command="svc llm pull")
    folder = _folder(where.home.root, name)
    written = 0.0

    def tell(step: PullStep) -> None:
        nonlocal written
        if step.digest and (time.monotonic() - written > _REPORT or step.completed == step.total):
            written = time.monotonic()
            _write(
                folder,
                Download(
                    name=name.short,
                    state="pulling",
                    completed=step.completed,
                    total=step.total,
                    known=step.known,
                ),
            )

    try:
        with hold_lock(folder / LOCK, "svc llm pull", LOOKED_SECONDS):
            try:
                pull(where, Models(llm_home(os.environ)), name.short, None, tell)
                _write(folder, Download(name=name.short, state="done"))
            except SvcError as error:
                _write(folder, Download(name=name.short, state="failed", detail=error.detail))
                return 1
            except OSError as error:
                detail = error.strerror or str(error)
                _write(folder, Download(name=name.short, state="failed", detail=detail))
                return 1
    except AlreadyLocked:
        return 0
    return 0


def _folder(home: Path, name: ModelName) -> Path:
    return home.absolute() / "downloads" / hashlib.sha256(str(name).encode()).hexdigest()[:32]


def _write(folder: Path, download: Download) -> None:
    with suppress(OSError):  # a full disk is found by who writes the blob
        store.write(folder / STATE, msgspec.json.encode(download))


if __name__ == "__main__":
    sys.exit(main())
