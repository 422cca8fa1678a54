"""The rules by which scans and watchers walk through folders: valid names, ignore files, nested
repositories."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection

from localstore.core import paths
from localstore.core.errors import PathInvalid, TooLarge
from localstore.core.ignore.matcher import SOURCES
from localstore.core.model.limits import IGNORE_FILE_BYTES, in_words
from localstore.core.paths import terminal_safe
from localstore.folder.link import FOLDER

NESTED = (".git", FOLDER)  # a folder that holds one of these is a repository of its own
IS_NESTED = "nested repository"  # the reason why such a folder is skipped
IS_OWN = "svc's own data"  # the same, where `.svc` is a file: `localstore.folder.own_folder`
LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def fault_of(path: str) -> str | None:
    """The reason why a repository cannot contain a file with this name; None if it can."""
    if not is_utf8(path):
        return "not UTF-8"
    try:
        paths.check(path)
    except PathInvalid:
        return "unsafe name"
    return None


def is_utf8(name: str) -> bool:
    """Whether the name is valid UTF-8. Entries with other names are never recorded."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def rules_in(folder: int, prefix: str, names: Collection[str]) -> dict[str, str]:
    """The text of each ignore file in an open directory, by file name. `names`: all names in the directory;
    `prefix`: its path with a trailing slash, "" for the root. Raises TooLarge."""
    texts = {}
    for source in [name for name in SOURCES if name in names]:
        try:
            fd = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError:
            continue
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            continue
        with os.fdopen(fd, "rb") as file:
            data = file.read(IGNORE_FILE_BYTES + 1)
        if len(data) > IGNORE_FILE_BYTES:
            path = terminal_safe(prefix + source)
            raise TooLarge(f"{path} is larger than {in_words(IGNORE_FILE_BYTES)}; shorten it")
        texts[source] = data.decode("utf-8", "surrogateescape")
    return texts
