"""Reservations of blobs that a running pull needs and no name refers to yet. A reserved blob is not deleted
when a model is removed.

    models/reserved/<key>.<token>      locked by the process that pulls; key: b3-<BLAKE3> or
sha256-<SHA-256>"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from localstore.folder.lock import held_files, hold_lock


@contextmanager
def reserve(folder: Path, keys: Iterable[str]) -> Iterator[None]:
    """A context in which the blobs (model files) with these keys are not deleted, although no model refers to
    them yet. If the process dies, the reservation ends too. The caller holds the lock of the cache when it
    enters the context."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with ExitStack() as stack:
        for key in keys:
            file = folder / f"{key}.{secrets.token_hex(8)}"
            stack.enter_context(hold_lock(file, "svc llm pull", may_be_nameless=True))
            stack.callback(file.unlink, missing_ok=True)
        yield


def list_reserved(folder: Path) -> set[str]:
    """The keys of the blobs that living processes reserve. Files of dead processes are removed. The caller
    holds the lock of the cache."""
    return {name.partition(".")[0] for name in held_files(folder)}
