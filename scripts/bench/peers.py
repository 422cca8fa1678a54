"""The tools with which `scripts.bench.binary` compares svc: git-lfs, hf_xet, borg and restic. Missing Python
packages are installed from PyPI; if a program is missing, an error names it.

git-lfs talks to giftless, a real LFS server, over HTTP; its git repository is a folder. hf_xet has no server
that runs offline, so its own local store (`local://`) is used. borg and restic write into a repository on the
same disk, as they do without a server. So only the costs of svc and git-lfs include HTTP and a server.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path

from scripts.bench.shared.cpu import Cost, run, serving

FILE = "model.bin"
PACKAGES = (  # giftless names none of what it needs
    *("hf_xet==1.8.0", "giftless==0.6.2", "gunicorn==27.0.1", "flask==3.1.3", "flask-classful==0.16.0"),
    *("flask-marshmallow==1.4.0", "marshmallow==3.26.2", "marshmallow-enum==1.5.1", "webargs==8.7.1"),
    *(
        "figcan==0.0.4",
        "pyjwt==2.15.1",
        "cryptography==50.0.2",
        "pyyaml==6.0.3",
        "python-dateutil==2.9.0.post0",
    ),
    *("python-dotenv==1.2.4", "importlib-metadata==10.2.0", "typing-extensions==4.16.0"),
)
PROGRAMS = {"git": "git", "git-lfs": "git-lfs", "borg": "borgbackup", "restic": "restic"}
"""Program → the Debian package that has it."""
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "svc-bench" / "peers"
BORG_CHUNKS = "buzhash,13,17,16,4095"  # 8 to 128 KiB, 64 KiB on average, as svc's; borg's default is 2 MiB
LFS_KEY = "bench-" * 8

XET = """
import hf_xet, sys
with hf_xet.XetSession().new_upload_commit(endpoint="local://" + sys.argv[2]) as commit:
    commit.start_upload_file(sys.argv[1])
"""

GIFTLESS = """
TRANSFER_ADAPTERS:
  basic:
    factory: giftless.transfer.basic_streaming:factory
    options:
      storage_class: giftless.storage.local_storage:LocalStorage
      storage_options: {{path: {store}}}
AUTH_PROVIDERS:
  - factory: giftless.auth.jwt:factory
    options: {{algorithm: HS256, private_key: {key}}}
PRE_AUTHORIZED_ACTION_PROVIDER: null
"""


def install() -> Path:
    """Install the Python packages of the tools once, into a folder of the user's cache. Returns the path of
    the Python that has them. If programs are missing, raises SystemExit, which names their Debian
    packages."""
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if missing:
        sys.exit(f"the peers need programs that are not here; run: apt install {' '.join(missing)}")
    python = CACHE / "bin" / "python"
    if not python.exists():
        venv.create(CACHE, with_pip=True)
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES]
    subprocess.run(pip, check=True)
    return python


class LfsSide:
    name = "git-lfs"

    def __init__(self, base: Path, url: str, pid: int, store: Path) -> None:
        self.base, self.url, self.pid, self.store = base, url, pid, store

    def open(self, folder: Path) -> None:
        bare = self.base / f"{folder.name}.git"
        self._git("init", "-q", "--bare", str(bare), cwd=self.base)
        self._git("init", "-q", "-b", "main", cwd=folder)
        self._git("remote", "add", "origin", str(bare), cwd=folder)
        self._git("lfs", "install", "--local", cwd=folder)
        self._git("config", "lfs.url", f"{self.url}/bench/{folder.name}", cwd=folder)
        self._git("config", "http.extraheader", self._header(), cwd=folder)
        self._git("config", "lfs.locksverify", "false", cwd=folder)
        self._git("lfs", "track", "*.bin", cwd=folder)

    def push(self, folder: Path) -> Cost:
        steps = (("add", "-A"), ("commit", "-qm", "version"), ("push", "-q", "origin", "main"))
        costs = [self._git(*words, cwd=folder) for words in steps]
        return Cost(sum(one.cpu for one in costs), sum(one.wall for one in costs))

    def clone(self, folder: Path) -> Cost | None:
        target = self.base / f"{folder.name}-clone"
        lfs = ("-c", f"lfs.url={self.url}/bench/{folder.name}", "-c", f"http.extraheader={self._header()}")
        smudge = ("-c", "filter.lfs.process=git-lfs filter-process", "-c", "filter.lfs.smudge=git-lfs smudge")
        bare = self.base / f"{folder.name}.git"
        cost = self._git(*lfs, *smudge, "clone", "-q", "-b", "main", str(bare), str(target), cwd=self.base)
        if (target / FILE).stat().st_size != (folder / FILE).stat().st_size:
            raise RuntimeError("git-lfs left a pointer")
        shutil.rmtree(target)
        return cost

    def _header(self) -> str:
        claims = {"sub": "bench", "scopes": ["obj:bench/*/*:*"], "exp": int(time.time()) + 3600}
        body = ".".join(_b64(json.dumps(one).encode()) for one in ({"alg": "HS256", "typ": "JWT"}, claims))
        mac = hmac.new(LFS_KEY.encode(), body.encode(), "sha256").digest()
        return f"Authorization: Bearer {body}.{_b64(mac)}"

    def _git(self, *words: str, cwd: Path) -> Cost:
        cost = Cost()
        with serving(self.pid, cost):
            own = run(["git", "-c", "user.name=b", "-c", "user.email=b@b", "-c", "gc.auto=0", *words], cwd)
        return Cost(cost.cpu + own.cpu, own.wall)


def _b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class XetSide:
    name = "hf_xet"

    def __init__(self, base: Path, python: Path) -> None:
        self.home, self.store, self.python = base / "xet-home", base / "xet", python
        self.home.mkdir()
        self.store.mkdir()

    def open(self, folder: Path) -> None:
        """Does nothing, because hf_xet needs no preparation."""

    def push(self, folder: Path) -> Cost:
        environment = {**os.environ, "HOME": str(self.home), "HF_HOME": str(self.home)}
        words = [str(self.python), "-c", XET, str(folder / FILE), str(self.store)]
        return run(words, folder, environment)

    def clone(self, folder: Path) -> Cost | None:
        return None


class BorgSide:
    """borg, without encryption and with lz4, its default compression."""

    name = "borg"

    def __init__(self, base: Path) -> None:
        self.base, self.store = base, base / "borg"
        self.store.mkdir()
        self.environment = {**os.environ, "BORG_BASE_DIR": str(base / "borg-home")}
        self.environment["BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK"] = "yes"

    def open(self, folder: Path) -> None:
        self._borg("init", "--encryption", "none", str(self.store / folder.name), cwd=folder)

    def push(self, folder: Path) -> Cost:
        archive = f"{self.store / folder.name}::{time.time_ns()}"
        return self._borg("create", "--chunker-params", BORG_CHUNKS, archive, ".", cwd=folder)

    def clone(self, folder: Path) -> Cost | None:
        listed = ["borg", "list", "--short", str(self.store / folder.name)]
        names = subprocess.run(listed, env=self.environment, capture_output=True, text=True, check=True)
        archive = f"{self.store / folder.name}::{names.stdout.split()[-1]}"
        with open_clone_target(self.base / f"{folder.name}-clone") as target:
            return self._borg("extract", archive, cwd=target)

    def _borg(self, *words: str, cwd: Path) -> Cost:
        return run(["borg", *words], cwd, self.environment)


class ResticSide:
    """restic, with encryption, which cannot be switched off."""

    name = "restic"

    def __init__(self, base: Path) -> None:
        self.base, self.store = base, base / "restic"
        self.store.mkdir()
        self.environment = {**os.environ, "RESTIC_PASSWORD": "bench", "HOME": str(base / "restic-home")}

    def open(self, folder: Path) -> None:
        self._restic(folder, "init", cwd=folder)

    def push(self, folder: Path) -> Cost:
        return self._restic(folder, "backup", "-q", ".", cwd=folder)

    def clone(self, folder: Path) -> Cost | None:
        with open_clone_target(self.base / f"{folder.name}-clone") as target:
            return self._restic(folder, "restore", "-q", "latest", "--target", str(target), cwd=target)

    def _restic(self, folder: Path, *words: str, cwd: Path) -> Cost:
        return run(["restic", "-r", str(self.store / folder.name), *words], cwd, self.environment)


Peer = LfsSide | XetSide | BorgSide | ResticSide


@contextlib.contextmanager
def open_clone_target(target: Path) -> Iterator[Path]:
    """A context that makes the empty folder `target` for a clone, and deletes it at the end. Raises
    RuntimeError if the clone did not put the measured file there."""
    target.mkdir()
    yield target
    if not any(target.rglob(FILE)):
        raise RuntimeError(f"{target} lacks {FILE}")
    shutil.rmtree(target)


@contextlib.contextmanager
def lfs_server(python: Path, store: Path) -> Iterator[tuple[int, str]]:
    """A context that runs giftless under gunicorn and yields (process id, address)."""
    store.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    words = [str(python), "-m", "gunicorn", "-w", "2", "-t", "300", "-b", f"127.0.0.1:{port}"]
    server = subprocess.Popen(
        [*words, "giftless.wsgi_entrypoint:app"],
        env={**os.environ, "GIFTLESS_CONFIG_STR": GIFTLESS.format(store=store, key=LFS_KEY)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(100):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(url, timeout=1).close()
                break
            time.sleep(0.1)
        yield server.pid, url
    finally:
        server.terminate()
        server.wait(20)
