"""Restricts the files that a process may use, with Landlock. Only for Linux; the numbers of its system calls
are the same on all processors.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

from svc.remote.system import call, libc

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # landlock_…
_VERSION = 1
_BENEATH = 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
_ALL = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}  # by version of Landlock
_REFER_TO_TRUNCATE = (1 << 13) | (1 << 14)
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | (1 << 14) | (1 << 15)  # what a rule on a file may say
_TCP = 1 | 2  # bind, connect: version 4
_SCOPES = 1 | 2  # abstract sockets, signals: version 6
READ = READ_FILE | READ_DIR
SCOPED = 6


def version() -> int:
    """Return the version of Landlock on this system; 0 if it has none."""
    try:
        return max(0, call(_CREATE, None, 0, _VERSION))
    except OSError:
        return 0


def restrict(rules: Iterable[tuple[Path, int]], own: Path) -> None:
    """Allow this process and its children to use only these paths, each with its rights, and everything below
    `own`. This cannot be undone. Paths that do not exist are ignored. Raises OSError if that fails."""
    abi = version()
    handled = _ALL[max(number for number in _ALL if number <= abi)]
    attributes = struct.pack("QQQ", handled, _TCP if abi >= 4 else 0, _SCOPES if abi >= SCOPED else 0)
    size = 8 if abi < 4 else 16 if abi < SCOPED else 24
    ruleset = call(_CREATE, ctypes.c_char_p(attributes), size, 0)
    try:
        for path, rights in (*rules, (own, handled & ~EXECUTE)):
            _allow(ruleset, path, rights & handled)
        if libc().prctl(38, 1, 0, 0, 0):  # PR_SET_NO_NEW_PRIVS
            raise OSError(ctypes.get_errno(), "no_new_privs")
        call(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return
    try:
        allowed = rights if path.is_dir() else rights & _OF_FILES
        call(_ADD, ruleset, _BENEATH, ctypes.c_char_p(struct.pack("=Qi", allowed, fd)), 0)
    finally:
        os.close(fd)
