"""Writes the settings with which git gets the passwords for one server from svc.

    [credential "https://node.example"]
        helper =
        helper = !'/usr/bin/svc' auth git-credential
        useHttpPath = true

The empty `helper =` switches off, for this server, the helpers that are configured for all servers. Those
helpers would store a password that expires in an hour."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from localstore.core.errors import ClientError, UsageError

HELPER, USE_PATH = "helper", "useHttpPath"
WORDS = "auth git-credential"


def settings_of(origin: str) -> str:
    """Return the name of the section for a server in git's settings: `credential.https://HOST`."""
    return f"credential.{origin}"


def program() -> str:
    """Return the path of git on this machine. Raises UsageError if git is not installed."""
    path = shutil.which("git")
    if path is None:
        raise UsageError("git is not installed here; install it, then run: svc auth setup-git")
    return path


def has_helper(origin: str) -> bool:
    """Return whether git has a credential helper that is set for this server only. It may be svc's or another
    one."""
    return any(_helpers(origin))


def require_free(origin: str) -> None:
    """Raise UsageError if git is not installed, or if another credential helper is set for this server
    only."""
    others = [helper for helper in _helpers(origin) if helper and not helper.endswith(f" {WORDS}")]
    if others:
        raise UsageError(
            f"git asks {others[0]} for passwords of {origin} already; if it is to use this sign-in instead, "
            f"first run: git config --global --unset-all {settings_of(origin)}.{HELPER}"
        )


def write(origin: str) -> list[str]:
    """Set up git to get its password for this server from svc. Returns the commands that were run. Raises
    UsageError if git is not installed, or if another credential helper is set for this server only."""
    require_free(origin)
    section = settings_of(origin)
    lines = [
        ("--replace-all", f"{section}.{HELPER}", ""),
        ("--add", f"{section}.{HELPER}", f"!{shlex.quote(_own_program())} {WORDS}"),
        ("--replace-all", f"{section}.{USE_PATH}", "true"),
    ]
    for words in lines:
        done = _git("config", "--global", *words)
        if done.returncode != 0:
            raise ClientError(f"git could not write its settings: {done.stderr.strip()}")
    return [shlex.join(["git", "config", "--global", *words]) for words in lines]


def _helpers(origin: str) -> list[str]:
    """Return the credential helpers that git has for this server only."""
    return _git("config", "--global", "--get-all", f"{settings_of(origin)}.{HELPER}").stdout.splitlines()


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program(), *words], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
    )


def _own_program() -> str:
    """Return the path of the program svc, for git to run."""
    started = Path(sys.argv[0])
    if getattr(sys, "frozen", False):
        return str(Path(sys.executable).resolve())
    path = shutil.which(started.name) if started.parent == Path() else str(started.absolute())
    if path is not None and started.name.startswith("svc") and os.access(path, os.X_OK):
        return path
    beside = Path(sys.executable).with_name("svc")
    return str(beside) if beside.exists() else "svc"
