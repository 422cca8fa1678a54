"""Starts and ends confined processes, which run `python -m svc.remote`. Each has its own folder and, if the
relay runs as root, its own user id.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from localstore.core.identity.ssh import MODULE
from relay.base.environment import StartRefused
from relay.base.ssh_settings import SshSettings

PYTHON = (sys.executable, "-I", "-X", "utf8", "-m", MODULE)
TRIAL_SECONDS = 60.0
GRACE_SECONDS = 2.0  # between SIGHUP and SIGKILL
CLAIMS = Path("/run")  # root's
_FOLDER = "svc-ssh-"  # and some letters, in the system's folder for temporary files
_KILL_ALL = "import os; os.kill(-1, 9)"  # of a uid that nobody else has


@dataclass(slots=True)
class Confined:
    """A running confined process. `uid`: its user id; None if it has that of the relay."""

    process: subprocess.Popen[bytes]
    folder: Path
    uid: int | None

    def hang_up(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGHUP)


class Processes:
    """Starts and ends confined processes."""

    def __init__(self, settings: SshSettings) -> None:
        self._settings = settings
        self._mine = -1  # locked while the uids are this relay's
        self._free = list(range(settings.uids, settings.uids + 2 * settings.sessions))
        self.own_user = os.geteuid() == 0

    async def start(self, files: tuple[int, int, int], link: int, environment: dict[str, str]) -> Confined:
        """Start a process. `files`: descriptors for its standard input, output and error; `link`: the
        descriptor of its link to the relay. Raises OSError."""
        uid = self._free.pop(0) if self.own_user else None
        work = asyncio.ensure_future(asyncio.to_thread(self._start, files, link, environment, uid))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:  # the client left; the process may have begun all the same
            await self.end(await work)
            raise
        except OSError:
            if uid is not None:
                self._free.append(uid)
            raise

    def _start(
        self,
        files: tuple[int, int, int],
        link: int,
        environment: dict[str, str],
        uid: int | None,
    ) -> Confined:
        folder = Path(tempfile.mkdtemp(prefix=_FOLDER))
        try:
            if uid is not None:
                os.chown(folder, uid, uid)
            process = subprocess.Popen(
                [*PYTHON, str(link), str(folder)],
                stdin=files[0],
                stdout=files[1],
                stderr=files[2],
                cwd="/",
                env={**environment, "HOME": str(folder), "TMPDIR": str(folder), "PATH": "/nonexistent"},
                pass_fds=(link,),
                start_new_session=True,
                umask=0o077,
                user=uid,
                group=uid,
                extra_groups=None if uid is None else (),
            )
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return Confined(process, folder, uid)

    async def end(self, confined: Confined) -> None:
        """End a process and all processes that it started, and remove its folder."""
        confined.hang_up()
        await asyncio.to_thread(self._end, confined)
        if confined.uid is not None:
            self._free.append(confined.uid)

    def _end(self, confined: Confined) -> None:
        with suppress(subprocess.TimeoutExpired):
            confined.process.wait(GRACE_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(confined.process.pid, signal.SIGKILL)
        confined.process.wait()
        if confined.uid is not None:
            _kill_all(confined.uid)
        shutil.rmtree(confined.folder, ignore_errors=True)

    async def require_confinement(self, data: Path) -> None:
        """Test the confinement with a process that must not be able to read the data folder `data`. Raises
        StartRefused, with the process's message, if the test fails."""
        await asyncio.to_thread(self._try_confinement, data)

    def _claim(self) -> None:
        """Lock the user ids in the settings for this relay. The lock is needed because the end of a session
        ends every process of its user id. Raises StartRefused if another relay has locked them."""
        first = self._settings.uids
        try:
            path = CLAIMS / f"svc-ssh-{first}.lock"
            self._mine = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartRefused(
                f"another relay on this machine gives sessions over SSH the uids from {first} on; "
                "set TR_SSH_UIDS to others"
            ) from None
        except OSError as error:
            raise StartRefused(f"the uids of sessions over SSH cannot be claimed: {error}") from None

    def _sweep(self) -> None:
        """Remove processes and folders of sessions that a killed relay left behind."""
        for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
            owner = folder.lstat().st_uid
            if owner in self._free and not folder.is_symlink():
                _kill_all(owner)
                shutil.rmtree(folder, ignore_errors=True)

    def _try_confinement(self, data: Path) -> None:
        if self.own_user:
            _require_open()
            self._claim()
            self._sweep()
        uid = self._free[0] if self.own_user else None
        folder = Path(tempfile.mkdtemp(prefix=_FOLDER))
        try:
            if uid is not None:
                os.chown(folder, uid, uid)
            words = ["--try", str(folder), str(data), *(["--own-user"] if self.own_user else [])]
            tried = subprocess.run(
                [*PYTHON, *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd="/",
                env={"HOME": str(folder), "TMPDIR": str(folder)},
                timeout=TRIAL_SECONDS,
                start_new_session=True,
                user=uid,
                group=uid,
                extra_groups=None if uid is None else (),
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise StartRefused(_cannot_confine(f"{error}")) from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if tried.returncode:
            lines = tried.stderr.decode("utf-8", "replace").strip().splitlines()
            raise StartRefused(_cannot_confine(lines[-1] if lines else f"it ended with {tried.returncode}"))


def _kill_all(uid: int) -> None:
    """End every process of this user id."""
    subprocess.run(
        [sys.executable, "-I", "-S", "-c", _KILL_ALL],
        user=uid,
        group=uid,
        extra_groups=(),
        env={},
        stderr=subprocess.DEVNULL,
        check=False,
    )


def _require_open() -> None:
    """Raise StartRefused if other users of this machine have no access to this Python or to the folder for
    temporary files."""
    for path in (Path(sys.executable), Path(sys.executable).resolve(), Path(tempfile.gettempdir()) / "any"):
        for folder in reversed(path.parents):
            if not folder.stat().st_mode & stat.S_IXOTH:
                raise StartRefused(
                    f"sessions over SSH run as users of their own, who do not reach {path.parent}: "
                    f"{folder} is closed to them; install Python and svc where all may read, "
                    "or unset TR_SSH_PORT"
                )


def _cannot_confine(why: str) -> str:
    return (
        "TR_SSH_PORT is set, and a process for a visitor cannot be confined here: "
        f"{why.removeprefix('svc: ')}; see the guide to hosting a relay, or unset it"
    )
