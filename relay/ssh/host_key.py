"""The relay's SSH host key: Ed25519, made once, in `ssh_host_key` of the data folder (0600)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from relay.base.environment import StartRefused

if TYPE_CHECKING:
    import asyncssh

NAME = "ssh_host_key"


def require_asyncssh() -> None:
    """Raise StartRefused unless asyncssh is installed."""
    try:
        import asyncssh  # noqa: F401
    except ModuleNotFoundError:
        raise StartRefused(
            "TR_SSH_PORT is set and asyncssh is not installed; install svc with its extra: svc[ssh]"
        ) from None


def load(data: Path) -> asyncssh.SSHKey:
    """Read the host key in the folder `data`, or make one if there is none. Raises StartRefused if the key
    cannot be read."""
    import asyncssh

    path = data / NAME
    try:
        if not path.exists():
            private_key = asyncssh.generate_private_key("ssh-ed25519").export_private_key()
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(private_key)
        path.chmod(0o600)
        return asyncssh.read_private_key(path)
    except (OSError, asyncssh.KeyImportError) as error:
        raise StartRefused(f"the SSH host key {path} cannot be read: {error}") from None


def fingerprint(key: asyncssh.SSHKey) -> str:
    """The fingerprint as ssh shows it: `SHA256:…`."""
    return key.get_fingerprint()
