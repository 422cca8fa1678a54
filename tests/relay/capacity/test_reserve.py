"""A disk that is nearly full: uploads are refused, and everything that makes room or reads still works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from localstore.core.encoding import b64u, digest
from localstore.core.errors import NoSpace
from localstore.core.lane.update import LiveUpdate, signing_bytes
from relay.capacity.reserve import Reserve, Space
from tests.relay.auth.people import Device
from tests.relay.conftest import Relay
from tests.relay.histories import create
from tests.relay.http.test_pack_http import pack_of, signed

PLENTY = Space(0, 0)


def lower(relay: Relay, kept: Space) -> None:
    """As if the disk had filled, or somebody had made room."""
    relay.node.reserve = Reserve(relay.folder, kept)


@pytest.fixture(autouse=True)
def room(relay: Relay) -> Iterator[None]:
    lower(relay, PLENTY)
    yield
    lower(relay, PLENTY)


@pytest.mark.parametrize("kept", [Space(2**62, 0), Space(0, 2**62)], ids=["bytes", "inodes"])
def test_uploads_are_refused_and_the_rest_works(relay, client, account, kept):
    mira = account()
    http = client(mira)
    repo = create(http, mira, "shown", visibility="public")
    (seal,) = repo.seal({"a.txt": b"one\n"})
    doomed = create(http, mira, "doomed")
    data = os.urandom(50)
    lower(relay, kept)
    uploads = [
        http.post(f"{repo.url}/packs", **signed(b"".join(pack_of(data).parts()))),
        http.put(f"{repo.url}/payloads/{digest(data).hex()}", content=data),
        http.post(f"{repo.url}/have", content=digest(data)),
        http.post("/api/v1/repos", json={"name": "third"}),
        Device(relay.url).sign_in("somebody-new"),
    ]
    assert [(one.status_code, one.json()["code"]) for one in uploads] == [(507, "no_space")] * len(uploads)
    assert "nearly full" in uploads[0].json()["detail"]
    hidden = client(account()).put(f"{doomed.url}/payloads/{digest(data).hex()}", content=data)
    assert hidden.status_code == 404  # the constant one, whatever the disk is like
    assert client().get(f"{repo.url}/raw/{seal}/a.txt").content == b"one\n"
    assert client().post(f"{repo.url}/packs/fetch", content=digest(b"one\n")).status_code == 200
    lanes = http.post(f"{repo.url}/branches/main/live/lanes", json={"lanes": []})
    assert lanes.json() == {"lanes": [], "missing": [], "left": 0}  # what a pull asks for
    updates = {"device_key_id": mira.key.id, "replica": 1, "updates": []}
    assert http.post(f"{repo.url}/branches/main/live/updates", json=updates).status_code == 507
    device = Device(relay.url, mira.key)
    assert device.sign_in(mira.handle).status_code == 201
    assert http.delete(doomed.url).is_success
    assert http.patch(repo.url, json={"description": "still here"}).is_success
    ready = client().get("/readyz")
    said = ready.json()
    assert (ready.status_code, said["status"], said["checks"]["space"]) == (200, "degraded", "low")
    lower(relay, PLENTY)
    assert http.post(f"{repo.url}/packs", **signed(b"".join(pack_of(data).parts()))).status_code == 201
    said = client().get("/readyz").json()
    assert (said["status"], said["checks"]["space"]) == ("ok", "ok")


def test_files_are_deleted_live_while_the_disk_is_full(relay, client, account):
    mira = account()
    http = client(mira)
    repo = create(http, mira, "nearly-full")
    repo.seal({"a.txt": b"one\n", "b.txt": b"two\n"})
    url = f"{repo.url}/branches/main/live"
    start = http.post(f"{url}/bootstrap", json={"device_key_id": mira.key.id}).json()
    lanes = {row[0]: row for row in start["rows"]}

    def update(n: int, kind: str, path: str, **members: object) -> dict[str, object]:
        named = {"gen": lanes[path][2], "base": lanes[path][4]} | members
        made = LiveUpdate(n=n, settled=0, path=path, kind=kind, signature="", **named)
        place = (http.get(repo.url).json()["id"], start["branch_id"], start["replica"], mira.key.id)
        return msgspec.to_builtins(
            msgspec.structs.replace(made, signature=b64u(mira.key.sign(signing_bytes(*place, made))))
        )

    def send(*updates: dict[str, object]) -> httpx.Response:
        body = {"device_key_id": mira.key.id, "replica": start["replica"], "updates": list(updates)}
        return http.post(f"{url}/updates", json=body)

    blob = {"blake3": digest(b"one\n").hex(), "size": 4}
    lower(relay, Space(2**62, 0))
    assert send(update(1, "delete", "a.txt"), update(2, "set_blob", "b.txt", **blob)).status_code == 507
    answer = send(update(3, "delete", "a.txt")).json()
    assert [one["result"] for one in answer["answers"]] == ["ok"]


def test_every_disk_that_holds_something_is_looked_at(tmp_path, monkeypatch):
    full = tmp_path / "packs"
    full.mkdir()
    real = os.statvfs
    empty = os.statvfs_result([4096, 4096, 1000, 0, 0, 1000, 0, 0, 0, 255])
    monkeypatch.setattr(os, "statvfs", lambda path: empty if path == full else real(path))
    assert Reserve(tmp_path, Space(1, 0), [tmp_path / "none"]).lacking() is None
    assert "0 MiB are free" in str(Reserve(tmp_path, Space(1, 0), [full]).lacking())


def test_a_look_at_the_disk_holds_for_a_moment(tmp_path):
    reserve = Reserve(tmp_path / "missing", Space(0, 0))
    with pytest.raises(OSError):
        reserve.lacking()
    found = Reserve(tmp_path, Space(2**62, 0))
    with pytest.raises(NoSpace, match="kept in reserve"):
        found.require()


FULL = """
import os, pathlib, sys, time, httpx
sys.path.insert(0, {root!r})
from tests.relay.auth.people import Device
from tests.relay.conftest import Relay
folder = pathlib.Path({folder!r})
relay = Relay(folder / "data", {{"TR_RATE_LIMITS": "off", "RUST_LOG": "off", "TR_RESERVE_BYTES": "0"}})
(folder / "data").mkdir()
relay.start()
try:
    asked = lambda: httpx.get(relay.url + "/readyz", trust_env=False)
    assert asked().status_code == 200, asked().text
    try:
        with (folder / "filler").open("wb") as filler:
            while True:
                filler.write(bytes(4096))
                filler.flush()
    except OSError:
        pass
    relay.node.probes.__init__()
    told = asked().json()
    print(told["status"], told["checks"]["data_folder"])
    (folder / "filler").unlink()
    relay.node.probes.__init__()
    print(asked().json()["status"])
finally:
    relay.stop()
"""


@pytest.mark.skipif(not shutil.which("unshare") or os.getuid() != 0, reason="mounts a small file system")
def test_a_full_disk_is_not_ready(tmp_path):
    """A file system of its own, in a mount namespace of its own, filled to the last byte."""
    if os.environ.get("TEST_DATABASE") or os.environ.get("TEST_OBJECTS"):
        pytest.skip("database and packs lie elsewhere")
    disk = tmp_path / "disk"
    disk.mkdir()
    script = FULL.format(root=str(Path(__file__).parents[3]), folder=str(disk))
    mounted = 'mount -t tmpfs -o size=24m none "$0" && exec "$@"'
    command = ["unshare", "-m", "sh", "-c", mounted, str(disk), sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("nothing may be mounted here")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split("\n")[:2] == ["unavailable down", "ok"]
