"""Finds Git LFS pointers. These are small files that git writes in place of large files that it did not
fetch."""

from __future__ import annotations

import re
from collections.abc import Mapping

from localstore.core.model.limits import IGNORE_FILE_BYTES
from localstore.core.paths import parents, terminal_safe
from localstore.sync.working_copy import WorkingCopy
from svc.console.table import size

ATTRIBUTES = ".gitattributes"
_POINTER_BYTES = 1024  # at most, says the specification of Git LFS
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-[^\n]*\n)*"
    rb"oid sha256:[0-9a-f]{64}\nsize ([0-9]{1,19})\n"
)


def pointers(copy: WorkingCopy, sizes: Mapping[str, int]) -> list[str]:
    """Return a warning for each file that is a Git LFS pointer instead of the real file. `sizes` maps the
    path of each file to its size in bytes. A file is read only if a `.gitattributes` in a folder above it
    mentions LFS."""
    small = [path for path, length in sizes.items() if length <= _POINTER_BYTES]
    folders = {"", *(folder for path in small for folder in parents(path))} if small else set()
    marked = {folder for folder in folders if _names_lfs(copy, folder)}
    warnings = []
    for path in sorted(small) if marked else ():
        if marked.isdisjoint(("", *parents(path))):
            continue
        data = copy.files.read_up_to(path, _POINTER_BYTES)
        pointer = _POINTER.fullmatch(data) if data else None
        if pointer is not None:
            warnings.append(
                f"warning: {terminal_safe(path)} is a pointer of Git LFS, not the file of "
                f"{size(int(pointer[1]))}; to have the file: git lfs pull, then push again"
            )
    copy.files.forget()
    return warnings


def _names_lfs(copy: WorkingCopy, folder: str) -> bool:
    data = copy.files.read_up_to(f"{folder}/{ATTRIBUTES}" if folder else ATTRIBUTES, IGNORE_FILE_BYTES)
    return data is not None and b"filter=lfs" in data
