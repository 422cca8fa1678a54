"""Runs a real S3 server on this machine, for tests with another server than moto.

    python -m scripts.s3_server versitygw      # built from the Go module proxy, over a folder
    python -m scripts.s3_server swift          # OpenStack Swift with s3api, of Debian's packages swift-*

Prints the environment variables with which the test suite uses the server, then runs until it is interrupted.
Swift has no conditional PUT; TEST_S3_CONDITIONAL_PUT says so. The stored data is deleted at the end.

    TEST_OBJECTS=s3 TEST_S3_ENDPOINT=… pytest tests/relay/objects
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from scripts.free_port import free_port

VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
ACCESS, SECRET = "test:tester", "testing"
SERVERS = ("account", "container", "object")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("server", choices=["versitygw", "swift"])
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="s3-server-") as folder, contextlib.ExitStack() as running:
        port = free_port()
        start = versitygw if asked.server == "versitygw" else swift
        put = start(Path(folder), port, running)
        wait_for(port)
        endpoint = f"http://127.0.0.1:{port}"
        for name, value in {
            "TEST_S3_ENDPOINT": endpoint,
            "TEST_S3_ACCESS_KEY": ACCESS,
            "TEST_S3_SECRET_KEY": SECRET,
            "TEST_S3_CONDITIONAL_PUT": put,
        }.items():
            print(f"export {name}={value}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
    return 0


def versitygw(folder: Path, port: int, running: contextlib.ExitStack) -> str:
    """Start versitygw on a folder. Returns the value that TEST_S3_CONDITIONAL_PUT must have for versitygw.
    `running`: closing it ends the server."""
    program = shutil.which("versitygw") or str(_build_versitygw())
    (folder / "data").mkdir()
    running.enter_context(
        process(
            [program, "--port", f"127.0.0.1:{port}", "posix", str(folder / "data")],
            folder / "log",
            ROOT_ACCESS_KEY=ACCESS,
            ROOT_SECRET_KEY=SECRET,
        )
    )
    return "native"


def _build_versitygw() -> Path:
    """Build versitygw once, into the user's cache. Returns the path of the program."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "svc-tests"
    program = place / "versitygw"
    if not program.exists():
        subprocess.run(["go", "install", VERSITYGW], check=True, env={**os.environ, "GOBIN": str(place)})
    return program


def swift(folder: Path, port: int, running: contextlib.ExitStack) -> str:
    """Start Swift: a proxy, and one server of each kind, with one replica. Returns the value that
    TEST_S3_CONDITIONAL_PUT must have for Swift. `running`: closing it ends the servers."""
    ports = {name: free_port() for name in SERVERS}
    for name, at in ports.items():
        builder = folder / f"{name}.builder"
        for words in (["create", "6", "1", "1"], ["add", f"r1z1-127.0.0.1:{at}/disk", "1"], ["rebalance"]):
            subprocess.run(
                ["swift-ring-builder", str(builder), *words], check=True, stdout=subprocess.DEVNULL
            )
    (folder / "disks" / "disk").mkdir(parents=True)
    for name, at in ports.items():
        (folder / f"{name}.conf").write_text(_server(folder, name, at))
    (folder / "proxy.conf").write_text(_proxy(folder, port))
    for name in (*SERVERS, "proxy"):
        command = [f"/usr/bin/swift-{name}-server", str(folder / f"{name}.conf")]
        running.enter_context(process(command, folder / f"{name}.log"))
    return "emulated"


def _common(folder: Path, port: int) -> str:
    return f"""[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
user = {os.environ.get("USER", "root")}
swift_dir = {folder}
devices = {folder}/disks
mount_check = false
log_level = WARNING
"""


def _server(folder: Path, name: str, port: int) -> str:
    return f"""{_common(folder, port)}
[pipeline:main]
pipeline = {name}-server
[app:{name}-server]
use = egg:swift#{name}
"""


def _proxy(folder: Path, port: int) -> str:
    user, _, name = ACCESS.partition(":")
    return f"""{_common(folder, port)}
[pipeline:main]
pipeline = catch_errors gatekeeper cache listing_formats bulk s3api tempauth copy slo dlo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:tempauth]
use = egg:swift#tempauth
user_{user}_{name} = {SECRET} .admin
[filter:s3api]
use = egg:swift#s3api
s3_acl = false
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:cache]
use = egg:swift#memcache
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:bulk]
use = egg:swift#bulk
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
"""


@contextlib.contextmanager
def process(command: list[str], log: Path, **variables: str) -> Iterator[None]:
    with log.open("w") as out:
        one = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **variables})
    try:
        yield
    finally:
        one.terminate()
        one.wait()


def wait_for(port: int) -> None:
    """Wait until the server on this port answers, whatever the answer is."""
    for _ in range(300):
        with contextlib.suppress(httpx.HTTPError):
            httpx.get(f"http://127.0.0.1:{port}/", trust_env=False)
            return
        time.sleep(0.1)
    raise TimeoutError("the server does not answer")


if __name__ == "__main__":
    sys.exit(main())
