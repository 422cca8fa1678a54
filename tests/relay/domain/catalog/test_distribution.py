"""A node hands out the builds of the client that its operator put there; installers compare their SHA-256."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import zipapp
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from localstore.core.encoding import b64u
from localstore.core.errors import Conflict, NotFound, ServerMisbehaved
from localstore.core.identity.keys import DeviceKey
from localstore.core.model.distribution import Build, signed_bytes
from svc import release_keys
from svc.api import Api
from svc.flows.catalog import upgrade
from svc.flows.place import in_use
from svc.http.client import Http
from tests.relay.conftest import Relay
from tests.relay.histories import ok

KEY, NEXT_KEY, STRANGE_KEY = (DeviceKey.generate() for _ in range(3))
BODY = "import sys\n\ndef main():\n    print('svc 9.1.0', *sys.argv[1:])\n"


class Folder:
    """The operator's folder, with one build for each kind of machine."""

    def __init__(self, at: Path) -> None:
        self.at = at
        at.mkdir()
        source = at.parent / "source"
        source.mkdir()
        (source / "program.py").write_text(BODY)
        zipapp.create_archive(source, at / "svc-any", "/usr/bin/env python3", "program:main")
        self.publish()

    def publish(self, version: str = "9.1.0", **changes: Any) -> None:
        data = (self.at / "svc-any").read_bytes()
        kinds = [("linux", "x86_64"), ("linux", "aarch64"), ("macos", "universal"), ("windows", "x86_64")]
        builds = []
        for system, arch in kinds:
            name = f"svc-{system}-{arch}"
            (self.at / name).write_bytes(data)
            said = {"name": name, "os": system, "arch": arch, "size": len(data), "source_commit": "ab" * 20}
            said = {**said, "sha256": hashlib.sha256(data).hexdigest()}
            signature = KEY.sign(signed_bytes(version, msgspec.convert(said, Build)))
            builds.append({**said, "signature": b64u(signature), **changes})
        told = {"version": version, "published_at": "2026-01-01T00:00:00Z", "artifacts": builds}
        (self.at / "release.json").write_text(json.dumps(told))

    def tamper(self) -> None:
        for one in self.at.glob("svc-*-*"):
            data = bytearray(one.read_bytes())
            data[40] ^= 1
            one.write_bytes(data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("builds") / "cli")


@pytest.fixture(scope="module")
def relay_variables(folder: Folder) -> dict[str, str]:
    return {"TR_RATE_LIMITS": "off", "RUST_LOG": "off", "TR_CLIENT_BUILDS": str(folder.at)}


@pytest.fixture(autouse=True)
def whole(folder: Folder) -> None:
    folder.publish()


@pytest.fixture
def api(relay: Relay) -> Iterator[Api]:
    made = Api(Http(relay.url, None))
    yield made
    made.close()


def test_each_build_is_what_the_list_says(relay: Relay, client: Callable[..., httpx.Client]) -> None:
    http = client()
    told = ok(http.get("/cli/release.json"))
    assert {(one["os"], one["arch"]) for one in told["artifacts"]} == {
        ("linux", "x86_64"),
        ("linux", "aarch64"),
        ("macos", "universal"),
        ("windows", "x86_64"),
    }
    for one in told["artifacts"]:
        got = http.get(one["url"])
        assert (len(got.content), hashlib.sha256(got.content).hexdigest()) == (one["size"], one["sha256"])
        assert got.headers["etag"] == f'"{one["sha256"]}"' and len(one["source_commit"]) == 40
        assert got.headers["content-type"] == "application/octet-stream"
        part = http.get(one["url"], headers={"range": "bytes=10-19"})
        assert (part.status_code, part.content) == (206, got.content[10:20])
        assert http.get(one["url"], headers={"if-none-match": got.headers["etag"]}).status_code == 304


@pytest.mark.parametrize("name", ["svc-any", "release.json", "..%2Frelease.json", "%2Fetc%2Fpasswd", "x"])
def test_what_the_list_does_not_name_is_not_there(client: Callable[..., httpx.Client], name: str) -> None:
    assert client().get(f"/cli/download/{name}").status_code == 404


def test_a_list_that_cannot_be_read_is_said_to_be(
    client: Callable[..., httpx.Client], folder: Folder
) -> None:
    for text in ("{", '{"version": "../x", "published_at": "x", "artifacts": []}', "[" * 3_000_000):
        (folder.at / "release.json").write_text(text)
        assert client().get("/cli/release.json").status_code == 503
    folder.publish(size=3)
    assert client().get("/cli/download/svc-macos-universal").status_code == 503
    folder.publish(name="../svc-any")
    assert client().get("/cli/release.json").status_code == 503
    (folder.at / "release.json").unlink()
    assert client().get("/cli/install.sh").status_code == 404


def _install(relay: Relay, to: Path) -> subprocess.CompletedProcess[str]:
    script = httpx.get(f"{relay.url}/cli/install.sh", trust_env=False)
    assert script.headers["content-type"].startswith("text/x-shellscript")
    environment = {"PATH": os.environ["PATH"], "HOME": str(to), "SVC_INSTALL_DIR": str(to / "bin")}
    return subprocess.run(
        ["sh"], input=script.text, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(
    not (shutil.which("curl") or shutil.which("wget")), reason="neither curl nor wget is here"
)
def test_the_installer_installs_what_was_announced_and_nothing_else(
    relay: Relay, folder: Folder, tmp_path: Path
) -> None:
    done = _install(relay, tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert "Installed svc 9.1.0" in done.stdout
    told = subprocess.run([tmp_path / "bin/svc", "hello"], capture_output=True, text=True, check=True)
    assert told.stdout == "svc 9.1.0 hello\n"
    before = (tmp_path / "bin/svc").read_bytes()
    folder.tamper()
    refused = _install(relay, tmp_path)
    assert refused.returncode == 1 and "nothing was installed" in refused.stderr
    assert (tmp_path / "bin/svc").read_bytes() == before
    assert [one.name for one in (tmp_path / "bin").iterdir()] == ["svc"]


@pytest.mark.skipif(
    not (shutil.which("curl") or shutil.which("wget")), reason="neither curl nor wget is here"
)
@pytest.mark.parametrize(
    ("start", "said"),
    [
        (b"#!/usr/bin/env python9.9\n", "svc 9.1.0 runs with python9.9, which is not on your PATH"),
        (b"#!/usr/bin/env false\n", "svc 9.1.0 does not start here"),
    ],
)
def test_the_installer_installs_nothing_that_does_not_start(
    relay: Relay, folder: Folder, tmp_path: Path, start: bytes, said: str
) -> None:
    whole = (folder.at / "svc-any").read_bytes()
    (folder.at / "svc-any").write_bytes(start + whole.partition(b"\n")[2])
    folder.publish()
    refused = _install(relay, tmp_path)
    (folder.at / "svc-any").write_bytes(whole)
    assert refused.returncode == 1 and "Installed" not in refused.stdout
    assert said in refused.stderr and refused.stderr.count("\n") == 1
    assert list((tmp_path / "bin").iterdir()) == []


def test_the_other_installer_has_the_same_digests(
    client: Callable[..., httpx.Client], folder: Folder
) -> None:
    script = client().get("/cli/install.ps1").text
    digest = hashlib.sha256((folder.at / "svc-any").read_bytes()).hexdigest()
    assert f"windows x86_64 svc-windows-x86_64 {digest}" in script and "Get-FileHash" in script
    assert script.index("& $part --version") < script.index("Move-Item")
    assert "@" not in script.replace("@'", "").replace("'@", "")


# --- svc upgrade


@pytest.fixture
def running(tmp_path: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that this program is, an older build."""
    file = tmp_path / "svc"
    file.write_bytes((folder.at / "svc-any").read_bytes())
    file.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(file)])
    monkeypatch.setattr(release_keys, "KEYS", (b64u(KEY.public), b64u(NEXT_KEY.public)))
    return file


def test_an_upgrade_replaces_the_file(api: Api, folder: Folder, running: Path) -> None:
    running.write_bytes(running.read_bytes().replace(b"9.1.0", b"0.0.9"))
    found = upgrade.compare_builds(api, "0.1.0")
    assert found.behind and found.file == running and found.build is not None
    assert found.build.arch in (platform.machine(), "universal")
    assert upgrade.install(api, found, lambda *_: None) == running
    assert running.read_bytes() == (folder.at / "svc-any").read_bytes()
    assert upgrade.compare_builds(api, "9.1.0").verified is True
    assert not upgrade.compare_builds(api, "9.1.0").behind
    running.write_bytes(running.read_bytes() + b"x")
    assert upgrade.compare_builds(api, "9.1.0").verified is False
    assert [one.name for one in running.parent.iterdir()] == ["svc"]


def test_other_bytes_than_announced_change_nothing(api: Api, folder: Folder, running: Path) -> None:
    before = running.read_bytes()
    folder.tamper()
    with pytest.raises(ServerMisbehaved, match="nothing was changed"):
        upgrade.install(api, upgrade.compare_builds(api, "0.1.0"), lambda *_: None)
    folder.publish("9.2.0")  # a build that says another version of itself
    with pytest.raises(ServerMisbehaved, match="does not start here"):
        upgrade.install(api, upgrade.compare_builds(api, "0.1.0"), lambda *_: None)
    assert running.read_bytes() == before and [one.name for one in running.parent.iterdir()] == ["svc"]


def test_a_build_without_a_trusted_signature_is_not_even_fetched(
    api: Api, folder: Folder, running: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = running.read_bytes()
    build = upgrade.compare_builds(api, "0.1.0").build
    assert build is not None and upgrade.compare_builds(api, "0.1.0").signed
    other_version = b64u(KEY.sign(signed_bytes("9.0.0", build)))  # an old build, listed as a newer one
    strange = b64u(STRANGE_KEY.sign(signed_bytes("9.1.0", build)))
    for signature in ("", other_version, strange, build.signature[:-1] + "B", "A" * 86):
        folder.publish(signature=signature)
        found = upgrade.compare_builds(api, "0.1.0")
        assert found.signed is False
        with pytest.raises(ServerMisbehaved, match="not signed with a release key"):
            upgrade.install(api, found, lambda *_: None)
    folder.publish()
    monkeypatch.setattr(release_keys, "KEYS", ())  # a program that was built without one
    with pytest.raises(Conflict, match="without a release key"):
        upgrade.install(api, upgrade.compare_builds(api, "0.1.0"), lambda *_: None)
    assert running.read_bytes() == before and [one.name for one in running.parent.iterdir()] == ["svc"]
    folder.publish(signature=b64u(NEXT_KEY.sign(signed_bytes("9.1.0", build))))
    monkeypatch.setattr(release_keys, "KEYS", (b64u(KEY.public), b64u(NEXT_KEY.public)))
    assert upgrade.compare_builds(api, "0.1.0").signed is True


def test_what_is_no_single_file_is_left_to_what_installed_it(
    api: Api, folder: Folder, running: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [str(running.with_name("nothing"))])
    with pytest.raises(Conflict, match="pip install --upgrade"):
        upgrade.install(api, upgrade.compare_builds(api, "0.1.0"), lambda *_: None)
    folder.publish(os="windows")
    with pytest.raises(NotFound, match="no build"):
        upgrade.install(api, upgrade.compare_builds(api, "0.1.0"), lambda *_: None)
    (folder.at / "release.json").unlink()
    with pytest.raises(NotFound, match="hands out no builds"):
        upgrade.compare_builds(api, "0.1.0")


def test_an_upgrade_is_alone(tmp_path: Path) -> None:
    first, second = in_use.hold(tmp_path), in_use.hold(tmp_path)
    assert first is not None and second is not None
    assert not in_use.is_alone(first)
    os.close(second)
    assert in_use.is_alone(first)
    assert in_use.hold(tmp_path) is None and in_use.is_alone(None)
    os.close(first)
    assert list(tmp_path.iterdir()) == []
