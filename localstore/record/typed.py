"""Records which pending edits were typed character by character, and not captured from a file
(docs/design/011).

A path counts as typed if all its pending updates were typed. The record stores how many were typed; if this
number differs from the number of pending updates, all of them count as captured."""

from __future__ import annotations

from localstore.record.database import Database
from localstore.record.entry import PathRecord

TYPED = "typed "  # and a path: the key of the number


def is_typed(db: Database, entry: PathRecord) -> bool:
    """Whether the path has pending updates and all of them were typed."""
    return entry.pending > 0 and db.number(f"{TYPED}{entry.path}") == entry.pending


def put_typed(db: Database, entry: PathRecord) -> None:
    """Record that all pending updates of the path were typed. Runs in the caller's transaction."""
    if entry.pending:
        db.put(f"{TYPED}{entry.path}", entry.pending)
    else:
        drop_typed(db, entry.path)


def drop_typed(db: Database, path: str) -> None:
    """Record that the pending updates of the path count as captured edits, not as typed ones."""
    db.drop_value(f"{TYPED}{path}")
