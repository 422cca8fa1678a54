"""Resolves a conflict: one version is written to the path, and the conflict copy moves to the trash."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from localstore.core import limits
from localstore.core.encoding import digest
from localstore.core.errors import ClientError, NotFound, UsageError
from localstore.core.paths import terminal_safe
from localstore.core.storage.file_kind import kind_of
from localstore.errors import ConflictsUnresolved
from localstore.folder.files import Content, Fetched
from localstore.record.conflicts import RecordedConflict
from localstore.sync.settle import recover, replace
from localstore.sync.trash import move_to_trash
from localstore.sync.working_copy import WorkingCopy

How = Literal["mine", "theirs", "edited", "tool", "gone"]


class OpenConflict(msgspec.Struct, frozen=True):
    """A recorded conflict and what the folder has now: digests of the file (theirs) and of the copy (mine),
    None for no file. `name`: how to name it in a command: the path, or the copy if the path has several."""

    record: RecordedConflict
    theirs: bytes | None
    mine: bytes | None
    name: str


class Texts(msgspec.Struct, frozen=True):
    """The three texts of a conflict. `mine`: that of the conflict copy now."""

    base: bytes
    theirs: bytes
    mine: bytes


class Resolved(msgspec.Struct, frozen=True):
    """The result of `resolve`. `how`: which text the path has now. `gone`: the copy had been deleted, and
    nothing changed. `trash`: the trash folder with the copy, and with the file that was `replaced`."""

    path: str
    how: How
    kept_as: str
    trash: Path | None = None
    replaced: bool = False


def conflicts(copy: WorkingCopy) -> tuple[list[RecordedConflict], list[RecordedConflict]]:
    """(conflicts whose copy exists, conflicts whose copy was deleted). The records of the latter are
    dropped."""
    records = copy.db.conflicts.list()
    over = [record for record in records if not copy.exists(record.kept_as)]
    with copy.db.step():
        for record in over:
            copy.db.conflicts.remove(record.kept_as)
    return [record for record in records if record not in over], over


def all_unresolved(copy: WorkingCopy) -> dict[str, str]:
    """The copies in the folder of unresolved conflicts → the path that each conflicts with."""
    return {
        conflict.kept_as: conflict.path
        for conflict in copy.db.conflicts.list()
        if copy.exists(conflict.kept_as)
    }


def unresolved_copies(copy: WorkingCopy, paths: Iterable[str]) -> dict[str, str]:
    """Those of the paths that are copies of unresolved conflicts → the path that each conflicts with."""
    recorded = {record.kept_as: record.path for record in copy.db.conflicts.list()}
    return {path: recorded[path] for path in paths if path in recorded}


def require_no_conflicts(copy: WorkingCopy) -> None:
    """Raises ConflictsUnresolved while a conflict stands whose copy the branch does not have: a push would
    publish the copy."""
    standing = {
        copy_path: path for copy_path, path in all_unresolved(copy).items() if copy_path not in copy.entries
    }
    if standing:
        paths = sorted(map(terminal_safe, set(standing.values())))
        raise ConflictsUnresolved(paths, terminal_safe(min(standing)))


def open_conflict(copy: WorkingCopy, path: str) -> OpenConflict:
    """The conflict of a path, or of its copy. Raises NotFound, UsageError if a path has several."""
    recover(copy)
    named = copy.db.conflicts.get(path)
    records = [named] if named is not None else list(copy.db.conflicts.of(path))
    if not records:
        raise NotFound(f"{path} has no conflict in this folder; see: svc conflicts")
    with_copy = [record for record in records if copy.exists(record.kept_as)]
    if len(with_copy) > 1:
        copies = " or ".join(terminal_safe(record.kept_as) for record in with_copy)
        raise UsageError(
            f"{path} has {len(with_copy)} conflicts; name the copy that is meant: svc resolve {copies}"
        )
    record = (with_copy or records)[0]
    alone = len(copy.db.conflicts.of(record.path)) == 1
    name = record.path if alone else record.kept_as
    return OpenConflict(record, copy.digest_on_disk(record.path), copy.digest_on_disk(record.kept_as), name)


def texts(copy: WorkingCopy, conflict: OpenConflict) -> Texts:
    """The three texts. Raises ClientError if a version is not text."""
    record = conflict.record
    base = copy.objects.get(record.base) if record.base is not None else None
    sides = []
    for path in (record.path, record.kept_as):
        data = copy.files.read_up_to(path, limits.TEXT_FILE)
        if data is None or kind_of(data) != "text":
            what = "is not text" if copy.exists(path) else "was deleted"
            raise ClientError(
                f"{path} {what}; choose one version: svc resolve {conflict.name} --mine or --theirs"
            )
        sides.append(data)
    return Texts(base or b"", *sides)


def resolve(copy: WorkingCopy, conflict: OpenConflict, how: How, text: bytes | None = None) -> Resolved:
    """Write `text` to the path, move the copy to the trash, drop the record. Without `text` the path gets the
    copy's bytes if `how` is mine, else it stays.

    A repeat finishes what was interrupted. Raises ClientError if a file changed since `conflict` was read.
    """
    record = conflict.record
    if open_conflict(copy, record.kept_as) != conflict:
        raise ClientError(
            f"{record.path} or {record.kept_as} changed meanwhile; nothing was done; "
            f"run svc resolve {conflict.name} again"
        )
    content: Content | None = None
    new_digest = conflict.theirs
    if how == "mine":
        new_digest, content = conflict.mine, Fetched(record.kept_as, stays=True)
    elif text is not None:
        new_digest, content = digest(text), text
    replaced = None
    if content is not None and new_digest is not None and new_digest != conflict.theirs:
        replaced = replace(copy, record.path, new_digest, content, None)
    trash = move_to_trash(copy, [record.kept_as], replaced)
    with copy.db.step():
        copy.db.conflicts.remove(record.kept_as)
    copy.files.forget()
    return Resolved(record.path, how, record.kept_as, trash, replaced is not None)


def end(copy: WorkingCopy, conflict: OpenConflict) -> Resolved:
    """Drop the record of a conflict whose copy was deleted."""
    with copy.db.step():
        copy.db.conflicts.remove(conflict.record.kept_as)
    return Resolved(conflict.record.path, "gone", conflict.record.kept_as)
