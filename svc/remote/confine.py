"""Confines this process, which runs a session over SSH. It limits the files, system calls and resources of
the machine that the process may use. This cannot be undone. See docs/design, the app over SSH."""

from __future__ import annotations

import importlib.util
import os
import resource
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from localstore.core.errors import ClientError
from localstore.core.model.limits import GIB, MIB
from svc.remote import calls, files

PACKAGES = ("svc", "tui", "localstore")
ADDRESSES, DATA, FILE = 4 * GIB, 768 * MIB, 64 * MIB  # bytes
OPEN, PROCESSES = 256, 256  # descriptors; processes and threads
_LIBRARY_FOLDERS = ("site-packages", "dist-packages")  # also those that a .pth file names
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share/zoneinfo")
_FILES = ("/etc/localtime", "/etc/ld.so.cache", "/etc/mime.types", "/dev/urandom", "/dev/zero")
_LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-x86_64.so.1")


def confine(own: Path, own_user: bool) -> None:
    """Confine this process: it may only read the installation and write the folder `own`, and has no network
    and no access to other processes. `own_user` says that no other process runs under the same uid. Raises
    ClientError if this Linux does not support it."""
    _limit(own_user)
    version = files.version()
    if os.geteuid() == 0:
        raise ClientError("a session over SSH does not run as root")
    if not version:
        raise ClientError("the kernel has no Landlock (Linux 5.13)")
    if version < files.SCOPED and not own_user:
        raise ClientError(
            "without root, sessions over SSH need a kernel with Landlock and its scopes (Linux 6.12)"
        )
    try:
        files.restrict(_rules(), own)
        calls.refuse()
    except OSError as error:
        raise ClientError(f"the kernel does not confine processes: {error}") from None


def _limit(own_user: bool) -> None:
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_AS: ADDRESSES,
        resource.RLIMIT_DATA: DATA,
        resource.RLIMIT_FSIZE: FILE,
        resource.RLIMIT_NOFILE: OPEN,
    }
    if own_user:  # the number counts for all processes of the uid
        limits[resource.RLIMIT_NPROC] = PROCESSES
    for kind, most in limits.items():
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def _rules() -> Iterator[tuple[Path, int]]:
    """Yields (path, rights) for each path that this process may use in addition to its own folder. Only
    Python may be executed."""
    for folder in _libraries():
        yield folder, files.READ
    for name in _FILES:
        yield Path(name), files.READ_FILE
    yield Path("/dev/null"), files.READ_FILE | files.WRITE_FILE
    for entry in sys.path:  # names alone: below the entry of a checkout there is more than packages
        if entry and Path(entry).is_dir():
            yield Path(entry), files.READ if Path(entry).name in _LIBRARY_FOLDERS else files.READ_DIR
    for program in {sys.executable, os.path.realpath(sys.executable), *_LOADERS}:
        yield Path(program), files.EXECUTE | files.READ_FILE
    yield Path(sys.prefix) / "pyvenv.cfg", files.READ_FILE


def _libraries() -> Iterator[Path]:
    yield from map(Path, _SYSTEM)
    for name in ("stdlib", "platstdlib", "purelib", "platlib"):
        yield Path(sysconfig.get_path(name))
    yield from map(Path, site.getsitepackages())
    yield Path(sys.base_prefix) / "lib"
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is not None:
            yield from map(Path, spec.submodule_search_locations or ())
