"""Replaces this program with the build that a server offers, after verifying its signature."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from packaging.version import InvalidVersion, Version

from localstore.core.encoding import unb64u
from localstore.core.errors import Conflict, Invalid, NotFound, ServerMisbehaved
from localstore.core.identity import keys
from localstore.core.model import distribution
from localstore.core.model.distribution import Build, signed_bytes
from localstore.disk_errors import translated_disk_errors
from localstore.progress import Progress
from svc import release_keys
from svc.api import Api

STARTS_WITHIN = 60  # seconds in which a new build says its version


class UpgradeStatus(msgspec.Struct, frozen=True):
    """The installed program compared with the builds on the server.

    `newest` is the newest version on the server. `build` is the build of that version for this machine, or
    None if there is none. `file` is the file of this program, or None if the program is not a single file.
    `verified` says whether `file` equals the server's build of the same version; None means unknown. `signed`
    says whether a key that this program trusts has signed `build`; None if there is no build."""

    version: str
    newest: str
    build: Build | None
    file: Path | None
    verified: bool | None
    signed: bool | None

    @property
    def behind(self) -> bool:
        return _version(self.newest) > _version(self.version)


def compare_builds(api: Api, version: str) -> UpgradeStatus:
    """Compare the running program with the server's builds. Raises NotFound if the server offers no
    builds."""
    try:
        newest = api.send(distribution.RELEASE)
    except NotFound:
        raise NotFound(f"{api.origin} hands out no builds of svc") from None
    build, file = _for_this_machine(newest.artifacts), one_file()
    verified = None
    if file is not None and build is not None and newest.version == version:
        with file.open("rb") as opened:
            verified = hashlib.file_digest(opened, "sha256").hexdigest() == build.sha256
    signed = None if build is None else _is_signed(newest.version, build)
    return UpgradeStatus(version, newest.version, build, file, verified, signed)


def install(api: Api, target: UpgradeStatus, progress: Progress) -> Path:
    """Replace the program's file, and return its path. Raises Conflict if the program is not a single file or
    trusts no key. Raises NotFound if there is no build for this machine. Raises ServerMisbehaved if no
    trusted key has signed the build, or if the received bytes differ from the announced ones. In all these
    cases nothing is changed."""
    if target.build is None:
        raise NotFound(
            f"{api.origin} has no build of version {target.newest} for {_system()} on {_machine()}"
        )
    if target.file is None:
        raise Conflict(
            "this program was installed as a Python package; upgrade it with what installed it, "
            "such as pip install --upgrade svc"
        )
    if not release_keys.KEYS:
        raise Conflict(
            "this program was built without a release key, so no build can be proven to be of its makers; "
            "install a signed one with the installer of a server that you trust"
        )
    if not target.signed:
        raise ServerMisbehaved(
            f"the build of {target.newest} that {api.origin} hands out is not signed with a release key of "
            "this program; nothing was changed"
        )
    with translated_disk_errors(target.file.parent, target.file.parent), _temporary_file(target.file) as part:
        _receive(api, target.build, part, progress)
        _require_runs(part, target.newest)
        part.replace(target.file)
    return target.file


def one_file() -> Path | None:
    """Return the path of this program if it is a single file: a frozen build, or a zip archive that Python
    runs. Returns None if it is an installed package."""
    if getattr(sys, "frozen", False):
        return Path(sys.executable).resolve()
    started = Path(sys.argv[0])
    if started.is_file() and zipfile.is_zipfile(started):
        return started.resolve()
    return None


def _for_this_machine(builds: list[Build]) -> Build | None:
    fitting = [build for build in builds if build.os == _system() and build.arch in (_machine(), "universal")]
    return min(fitting, key=lambda build: build.arch == "universal", default=None)


def _is_signed(version: str, build: Build) -> bool:
    """Return whether the signature of the build is valid for this version, and made with a key that this
    program trusts."""
    try:
        signature = unb64u(build.signature)
        trusted = [unb64u(key) for key in release_keys.KEYS]
    except Invalid:
        return False
    message = signed_bytes(version, build)
    return any(keys.verify(key, message, signature) for key in trusted)


def _system() -> str:
    name = platform.system().lower()
    return "macos" if name == "darwin" else name


def _machine() -> str:
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


def _version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion:
        raise ServerMisbehaved("the server hands out a build whose version is none") from None


@contextmanager
def _temporary_file(file: Path) -> Iterator[Path]:
    """A context that yields an empty file in the folder of `file`. It is deleted at the end if it was not
    renamed."""
    fd, name = tempfile.mkstemp(prefix=".svc-", dir=file.parent)
    os.close(fd)
    try:
        yield Path(name)
    finally:
        with suppress(FileNotFoundError):
            Path(name).unlink()


def _receive(api: Api, build: Build, part: Path, progress: Progress) -> None:
    whole, size = hashlib.sha256(), 0
    with (
        api.http.stream_from(distribution.DOWNLOAD, 0, build.size, None, None, artifact=build.name) as (
            _,
            pieces,
        ),
        part.open("wb") as file,
    ):
        for piece in pieces:
            size += len(piece)
            whole.update(piece)
            file.write(piece)
            progress("receiving", 0, 1, size)
        file.flush()
        os.fsync(file.fileno())
    if size != build.size or whole.hexdigest() != build.sha256:
        raise ServerMisbehaved(
            f"what arrived is not the build {build.name} that the server announced; nothing was changed"
        )
    part.chmod(0o755)


def _require_runs(part: Path, version: str) -> None:
    """Raise ServerMisbehaved unless the new program `part` starts on this machine and prints this version."""
    try:
        done = subprocess.run(
            [part, "--version"],
            capture_output=True,
            timeout=STARTS_WITHIN,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        words = done.stdout.decode("utf-8", "replace").split()
    except (OSError, subprocess.TimeoutExpired):
        words = []
    if version not in words:
        raise ServerMisbehaved(f"the new build, {version}, does not start here; nothing was changed")
