"""A small file system in a name space of mounts of its own, which nobody else sees and which ends with it."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

WHY = "mounts a small file system"
CAN_MOUNT = bool(shutil.which("unshare") and shutil.which("nsenter") and os.getuid() == 0)


class SmallDisk:
    """`folder`: where the file system lies for commands that begin with `words`. `seen`: its path for this
    process."""

    def __init__(self, folder: Path, mib: int) -> None:
        folder.mkdir()
        mount = f'mount -t tmpfs -o size={mib}m none "$0" && echo mounted && exec cat'
        self.process = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", mount, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout is not None
        if self.process.stdout.readline() != b"mounted\n":
            self.close()
            pytest.skip("nothing may be mounted here")
        self.folder, self.seen = folder, Path(f"/proc/{self.process.pid}/root{folder}")

    def words(self, cwd: Path) -> list[str]:
        """Words before a command that runs in `cwd` and sees the file system."""
        return ["nsenter", f"--mount=/proc/{self.process.pid}/ns/mnt", "env", "-C", str(cwd)]

    def fill(self) -> None:
        """Take the last byte."""
        with suppress(OSError), (self.seen / "filler").open("ab", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def free(self) -> None:
        (self.seen / "filler").unlink()

    def close(self) -> None:
        self.process.communicate()
