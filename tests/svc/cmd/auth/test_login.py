"""`svc login` and what is left of it: the page that opens, and the end of the day."""

from __future__ import annotations

import getpass
import json
import os
import platform
import pty
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from svc.http.session import Sessions
from tests.svc.cmd.frame.test_complete import readable
from tests.svc.conftest import ROOT, Svc, clean_environment


def test_a_session_of_yesterday_asks_to_sign_in(alice: Svc, node: str) -> None:
    sessions = Sessions(Path(os.environ["SVC_HOME"]))
    kept = sessions.find(node)
    assert kept is not None
    left = kept.seconds_left(datetime.now(UTC))
    assert 23 * 3600 < left <= 24 * 3600, "about once a day"
    ended = datetime.fromisoformat(kept.expires_at) - timedelta(hours=25)
    sessions.save(msgspec.structs.replace(kept, expires_at=ended.isoformat()))
    told = alice("auth", "status")
    assert told.code == 4
    assert f"svc login --server {node}" in told.err


def test_the_page_opens_where_somebody_sits(node: str, tmp_path: Path) -> None:
    """A browser that writes what it is asked to open into a pipe."""
    if sys.platform == "darwin":
        pytest.skip("the system decides about the browser")
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    os.mkfifo(opened)
    browser.write_text(f"#!/bin/sh\nprintf %s \"$1\" > '{opened}'\n")
    browser.chmod(0o755)
    settings = {
        "SVC_HOME": str(tmp_path / "home"),
        "SVC_SERVER": node,
        "DISPLAY": ":0",
        "BROWSER": str(browser),
    }
    environment = clean_environment(**settings)
    for name in ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"):
        environment.pop(name, None)
    near, far = pty.openpty()
    pipe = os.open(opened, os.O_RDONLY | os.O_NONBLOCK)
    process = subprocess.Popen(
        [sys.executable, "-m", "svc", "login"], stdin=far, stdout=far, stderr=far, env=environment, cwd=ROOT
    )
    try:
        assert readable(pipe, 60)
        assert os.read(pipe, 1000).decode().startswith(f"{node}/cli/authorize")
    finally:
        process.kill()
        process.wait()
        for end in (pipe, near, far):
            os.close(end)


def test_a_device_has_a_name_that_can_be_changed(alice: Svc) -> None:
    def called() -> list[str]:
        return [str(one["name"]) for one in json.loads(alice("auth", "device", "list", "--json", "name").out)]

    handle = os.environ["TEST_HANDLE"]
    assert called() == [f"{getpass.getuser()}@{platform.node()}"]
    key = alice("repo", "device", "status", "-q", ".id").out.strip()
    told = alice("auth", "device", "rename", key, "Alice's laptop")
    assert (told.code, told.out) == (0, "Alice's laptop\n")
    assert called() == ["Alice's laptop"]
    assert alice("auth", "token", "list", "--jq", ".[].label").out == "Alice's laptop\n"
    for wrong in ("", "  ", "two\nlines", "x" * 1000):
        assert alice("auth", "device", "rename", key, wrong).code == 2
        assert alice("login", "--device-key", "--handle", handle, "--name", wrong or " ").code == 2
    assert alice("auth", "device", "rename", "nobodys", "x").code == 1
    assert called() == ["Alice's laptop"]
    again = ["login", "--device-key", "--handle", handle]
    assert alice(*again).code == 0
    assert called() == ["Alice's laptop"], "signing in again keeps a name"
    assert alice(*again, "--name", "desk").code == 0
    assert called() == ["desk"]
    code = alice("auth", "device", "add").out.strip()
    new = [*again, "--new-key", "--yes", "--pair", code, "--name", "second"]
    assert alice(*new).code == 0
    assert called() == ["second", "desk"]
