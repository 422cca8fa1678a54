"""A release: svc as one file that a relay hands out, and that replaces an older one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from localstore.core.encoding import b64u
from localstore.core.identity.keys import DeviceKey
from localstore.core.model.distribution import Build, ClientRelease, signed_bytes
from scripts import release, release_key
from scripts.release import LIST, NotBuilt
from svc import __version__
from tests.relay.conftest import Relay

NEW, NEWER = "9.9.9", "9.9.10"


def run(program: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    where = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "SVC_HOME": str(home / "svc")}
    return subprocess.run(
        [program, *words],
        env={"PATH": path, "LC_ALL": "C.UTF-8", **where},
        capture_output=True,
        text=True,
        timeout=120,
    )


def listed(folder: Path) -> ClientRelease:
    return msgspec.json.decode((folder / LIST).read_bytes(), type=ClientRelease)


def signed_by(key: DeviceKey, build: Build) -> Build:
    return msgspec.structs.replace(build, signature=b64u(key.sign(signed_bytes(NEW, build))))


def flip(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.seek(file.stat().st_size // 2)
        byte = opened.read(1)[0]
        opened.seek(-1, os.SEEK_CUR)
        opened.write(bytes([byte ^ 1]))


def test_a_release_is_handed_out_and_replaces_an_older_one(tmp_path: Path) -> None:
    builds, home = tmp_path / "builds", tmp_path / "home"
    home.mkdir()
    old, key, next_key = tmp_path / "svc", DeviceKey.generate(), DeviceKey.generate()
    release.write(old, __version__, [b64u(key.public)])
    before = old.read_bytes()
    made = release.release(builds, key, b64u(next_key.public), NEW)
    assert (listed(builds).version, [one.name for one in listed(builds).artifacts]) == (NEW, [made.name])

    relay = Relay(tmp_path / "data", {"TR_CLIENT_BUILDS": str(builds), "RUST_LOG": "off"})
    relay.start()
    try:
        node = ("--server", relay.url)
        checked = run(old, home, "upgrade", "--check", *node, "--json", "--jq", ".newest")
        assert (checked.returncode, checked.stdout.strip()) == (0, NEW), checked.stderr

        strange = msgspec.structs.replace(listed(builds), artifacts=[signed_by(DeviceKey.generate(), made)])
        by_its_key = (builds / LIST).read_bytes()
        (builds / LIST).write_bytes(msgspec.json.encode(strange))
        refused = run(old, home, "upgrade", *node)
        assert (refused.returncode, "not signed with a release key" in refused.stderr) == (1, True)
        assert old.read_bytes() == before
        (builds / LIST).write_bytes(by_its_key)

        flip(builds / made.name)
        refused = run(old, home, "upgrade", *node)
        assert refused.returncode == 1
        assert "is not the build" in refused.stderr
        assert old.read_bytes() == before

        flip(builds / made.name)
        upgraded = run(old, home, "upgrade", *node)
        assert upgraded.returncode == 0, upgraded.stderr
        assert old.read_bytes() == (builds / made.name).read_bytes()
        assert run(old, home, "--version").stdout == f"svc {NEW}\n"
        again = run(old, home, "upgrade", "--check", *node, "--json", "--jq", ".verified")
        assert again.stdout.strip() == "true", again.stderr

        newest = release.release(builds, next_key, None, NEWER)  # the key changes; this program knows both
        upgraded = run(old, home, "upgrade", *node)
        assert upgraded.returncode == 0, upgraded.stderr
        assert old.read_bytes() == (builds / newest.name).read_bytes()
    finally:
        relay.stop()


def test_builds_of_the_same_version_for_other_machines_stay(tmp_path: Path) -> None:
    build = {"name": "a", "os": "windows", "arch": "x86_64", "size": 1, "sha256": "0" * 64}
    made = msgspec.convert({**build, "source_commit": "ab" * 20}, release.Build)
    other = msgspec.structs.replace(made, name="b", os="macos")
    (tmp_path / LIST).write_bytes(msgspec.json.encode(release._add_to_list(tmp_path, NEW, other)))
    assert [one.name for one in release._add_to_list(tmp_path, NEW, made).artifacts] == ["b", "a"]
    assert [one.name for one in release._add_to_list(tmp_path, "10.0", made).artifacts] == ["a"]
    (tmp_path / LIST).write_text("no list")
    with pytest.raises(NotBuilt, match="is not a list"):
        release._add_to_list(tmp_path, NEW, made)


def test_a_release_key_is_for_its_owner_and_made_once(tmp_path: Path) -> None:
    file = tmp_path / "key"
    key = release_key.make(file)
    assert (file.stat().st_mode & 0o777, release_key.read(file)) == (0o600, key)
    assert release_key.public(b64u(key.public)) == b64u(key.public)
    with pytest.raises(release_key.NoKey, match="exists"):
        release_key.make(file)
    file.write_text("svc-release-key-v1 AAAA")
    for wrong in (file, tmp_path / "nothing"):
        with pytest.raises(release_key.NoKey, match=r"scripts\.release_key"):
            release_key.read(wrong)
    with pytest.raises(release_key.NoKey, match="no public key"):
        release_key.public("AAAA")


def test_another_python_is_told_so(tmp_path: Path) -> None:
    start = release.START.read_text().replace("@PYTHON@", "2.7")
    (tmp_path / "start.py").write_text(start)
    told = subprocess.run([sys.executable, tmp_path / "start.py"], capture_output=True, text=True)
    assert (told.returncode, "runs with Python 2.7" in told.stderr) == (1, True)
