"""A relay that comes back from an older backup while two folders are watched, with real agents."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.live.devices import ROOT, Device, Relay
from tests.patience import until
from tests.svc.agent.pair import devices as devices
from tests.svc.agent.pair import relay as relay
from tests.svc.agent.pair import shared


def run_relay(*words: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-P", "-m", "relay", *words], check=True, cwd=ROOT, env=environment)


def test_what_the_relay_lost_is_sent_again_by_who_has_it(
    devices: tuple[Device, Device], relay: Relay, tmp_path: Path
) -> None:
    first, second = devices
    data, kept = relay._base / "data", tmp_path / "backup"
    shared(devices, "text.txt", "one\n")
    run_relay("backup", str(kept), "--data", str(data))
    (first.folder / "text.txt").write_text("one\ntwo\n")
    (first.folder / "bytes.bin").write_bytes(b"\0one")
    first.svc("push", "-m", "Lost")
    (second.folder / "unsealed.txt").write_text("live\n")
    until(lambda: (first.folder / "unsealed.txt").exists())
    until(lambda: (second.folder / "bytes.bin").exists())
    for device in devices:
        device.wait_for("live")
    relay.kill()
    for device in devices:
        device.wait_for("offline")
    shutil.rmtree(data)
    run_relay("restore", str(kept), "--data", str(data))
    relay.start()
    for device in devices:
        device.wait_for("live")
    (second.folder / "bytes.bin").write_bytes(b"\0two")
    until(lambda: (first.folder / "bytes.bin").read_bytes() == b"\0two")
    (first.folder / "text.txt").write_text("one\ntwo\nthree\n")
    until(lambda: (second.folder / "text.txt").read_text() == "one\ntwo\nthree\n")
    for device in devices:
        device.wait_for("live")
        assert not list(device.folder.glob("*sync-conflict*"))
    first.svc("push", "-m", "Again")
    until(lambda: json.loads(second.svc("status", "--json", "changed,new")) == {"changed": [], "new": []})
    second.svc("repo", "clone", "ann/app", str(tmp_path / "clone"))
    found = {path.name: path.read_bytes() for path in (tmp_path / "clone").iterdir() if path.is_file()}
    assert found["unsealed.txt"] == b"live\n"
    assert (found["bytes.bin"], found["text.txt"]) == (b"\0two", b"one\ntwo\nthree\n")
