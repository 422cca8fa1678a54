"""Resolves a conflict: writes one version to the path, and moves the conflict copy to the trash.

If one of the two versions is a directory, the version that was not chosen is moved to the trash. The chosen
version is renamed to the path if it is elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from localstore.core.encoding import digest
from localstore.core.errors import ClientError, NotFound, UsageError
from localstore.core.model import limits
from localstore.core.paths import is_inside, parents, terminal_safe
from localstore.core.storage.file_kind import kind_of
from localstore.errors import ConflictsUnresolved
from localstore.folder.files import Content, FetchedFile
from localstore.record.conflicts import RecordedConflict
from localstore.sync.aside import renamed_records
from localstore.sync.settle import in_the_way, recover, replace
from localstore.sync.trash import move_to_trash
from localstore.sync.working_copy import WorkingCopy

How = Literal["mine", "theirs", "edited", "tool", "gone"]


class OpenConflict(msgspec.Struct, frozen=True):
    """A recorded conflict, compared with the present files of the folder.

    `theirs` is the BLAKE3 of the file at the path, `mine` that of the conflict copy; None means that there is
    no file. `name` is the path by which commands name the conflict: the path of the file, or of the copy if
    the file has several conflicts. `over` says that the copy was deleted. `is_folder` says that the file or
    the copy is a directory now."""

    record: RecordedConflict
    theirs: bytes | None
    mine: bytes | None
    name: str
    over: bool
    is_folder: bool

    @property
    def folder(self) -> bool:
        """Whether the file or its copy is a directory now, or was one when the conflict was recorded."""
        return self.is_folder or self.copy_is_theirs

    @property
    def copy_is_theirs(self) -> bool:
        """Whether the conflict copy has the other side's version. That is so if this folder has a directory
        at the path: the directory stays, and the other side's file becomes the copy."""
        return self.record.mine is None and self.mine is not None


class Texts(msgspec.Struct, frozen=True):
    """The three texts of a conflict: the common `base`, `theirs` at the path, and `mine`, which is the
    current text of the conflict copy."""

    base: bytes
    theirs: bytes
    mine: bytes


class ResolveResult(msgspec.Struct, frozen=True):
    """The result of `resolve`.

    `how` says which version the path has now. It is `gone` if the user had deleted the copy before, so that
    nothing was changed. `kept_as` is the path of the conflict copy. `trash` is the folder to which the copy
    was moved and, if `replaced` is True, the previous file, too. `absent` says that nothing is at the path
    now. `renamed` says that the copy was moved to the path."""

    path: str
    how: How
    kept_as: str
    trash: Path | None = None
    replaced: bool = False
    absent: bool = False
    renamed: bool = False


def conflicts(copy: WorkingCopy) -> tuple[list[RecordedConflict], list[RecordedConflict]]:
    """Return two lists: the conflicts whose copy exists, and the conflicts whose copy was deleted. Conflicts
    of the second kind are removed from the record."""
    recover(copy)
    records = copy.db.conflicts.list()
    over = [record for record in records if not copy.exists(record.kept_as)]
    with copy.db.step():
        for record in over:
            copy.db.conflicts.remove(record.kept_as)
    standing = [record for record in records if record not in over]
    elsewhere = {(record.path, record.mine) for record in standing}  # a killed move left its record twice
    return standing, [record for record in over if (record.path, record.mine) not in elsewhere]


def all_unresolved(copy: WorkingCopy) -> dict[str, str]:
    """Return the unresolved conflicts whose copy is in the folder. Maps the path of each conflict copy to the
    path that it conflicts with."""
    return {
        conflict.kept_as: conflict.path
        for conflict in copy.db.conflicts.list()
        if copy.exists(conflict.kept_as)
    }


def unresolved_copies(copy: WorkingCopy, paths: Iterable[str]) -> dict[str, str]:
    """Return those of `paths` that are a conflict copy of an unresolved conflict, or are inside such a copy.
    Each is mapped to the path of the file in conflict."""
    recorded = {record.kept_as: record.path for record in copy.db.conflicts.list()}
    if not recorded:
        return {}
    return {
        path: recorded[kept_as]
        for path in paths
        for kept_as in (path, *reversed(parents(path)))
        if kept_as in recorded
    }


def require_no_conflicts(copy: WorkingCopy) -> None:
    """Raise ConflictsUnresolved if there is an unresolved conflict whose copy was never sent. The next push
    would publish the copy."""
    standing = {
        copy_path: path for copy_path, path in all_unresolved(copy).items() if not _is_sent(copy, copy_path)
    }
    if standing:
        paths = sorted(map(terminal_safe, set(standing.values())))
        raise ConflictsUnresolved(paths, terminal_safe(min(standing)))


def _is_sent(copy: WorkingCopy, kept_as: str) -> bool:
    """Return whether the branch has the conflict copy. If the copy is a directory, it is enough that the
    branch has a file in it."""
    return kept_as in copy.entries or any(path.startswith(kept_as + "/") for path in copy.entries)


def open_conflict(copy: WorkingCopy, path: str) -> OpenConflict:
    """Return the unresolved conflict at a path, or the one whose copy is at the path. Raises NotFound if
    there is none, UsageError if the path has several conflicts."""
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
    return OpenConflict(
        record,
        copy.digest_on_disk(record.path),
        copy.digest_on_disk(record.kept_as),
        name,
        not copy.exists(record.kept_as),
        copy.files.is_folder(record.path) or copy.files.is_folder(record.kept_as),
    )


def texts(copy: WorkingCopy, conflict: OpenConflict) -> Texts:
    """Return the three texts of a conflict. Raises ClientError if a version is not text."""
    record = conflict.record
    base = copy.objects.get(record.base) if record.base is not None else None
    sides = []
    for path in (record.path, record.kept_as):
        data = copy.files.read_up_to(path, limits.TEXT_FILE)
        if data is None or kind_of(data) != "text":
            what = "is not text" if copy.exists(path) else "was deleted"
            if copy.files.is_folder(path):
                what = "is a folder"
            raise ClientError(
                f"{path} {what}; choose one version: svc resolve {conflict.name} --mine or --theirs"
            )
        sides.append(data)
    return Texts(base or b"", *sides)


def resolve(copy: WorkingCopy, conflict: OpenConflict, how: How, text: bytes | None = None) -> ResolveResult:
    """Resolve a conflict: write the result to its path, move the conflict copy to the trash, and delete the
    record of the conflict. The result is `text` if it is given. Otherwise it is the conflict copy if `how` is
    mine, else the present file.

    An interrupted call can be repeated, which finishes it. Raises ClientError if a file changed since
    `conflict` was read. Raises Conflict if the path cannot be written: a parent folder of it is a file, or a
    link or another special file is at the path. Also raises Conflict if a directory contains something that
    cannot be moved to the trash."""
    record = conflict.record
    if open_conflict(copy, record.kept_as) != conflict:
        raise ClientError(
            f"{record.path} or {record.kept_as} changed meanwhile; nothing was done; "
            f"run svc resolve {conflict.name} again"
        )
    for path in (record.path, *([record.kept_as] if how == "mine" else [])):
        if copy.files.is_special(path):
            raise in_the_way(path)
    if conflict.folder and (how == "theirs") == conflict.copy_is_theirs:
        return _take_copy(copy, conflict, how)
    content: Content | None = None
    new_digest = conflict.theirs
    if how == "mine" and not conflict.folder:
        new_digest, content = conflict.mine, FetchedFile(record.kept_as, stays=True)
    elif text is not None:
        new_digest, content = digest(text), text
    replaced = None
    if content is not None and new_digest is not None and new_digest != conflict.theirs:
        replaced = replace(copy, record.path, new_digest, content, None)
    trash = move_to_trash(copy, [record.kept_as], replaced)
    with copy.db.step():
        for clash in _with_inside(copy, record):
            copy.db.conflicts.remove(clash.kept_as)
    copy.files.forget()
    absent = not copy.exists(record.path)
    return ResolveResult(record.path, how, record.kept_as, trash, replaced is not None, absent)


def _take_copy(copy: WorkingCopy, conflict: OpenConflict, how: How) -> ResolveResult:
    """Resolve a conflict of a file with a directory by moving the conflict copy to the path. Before that, the
    file or directory at the path is moved to the trash."""
    record = conflict.record
    files = copy.files
    blocked = files.find_blocker(record.path)
    if blocked is not None:
        raise in_the_way(record.path, blocked)
    trash = move_to_trash(copy, [record.path])
    inside = [clash for clash in _with_inside(copy, record) if clash != record]
    with copy.db.step():
        for clash in renamed_records(inside, record.kept_as, record.path):
            copy.db.conflicts.put(clash)
    copy.files.forget()
    copy.files.move(record.kept_as, record.path)
    with copy.db.step():
        for clash in (record, *inside):
            copy.db.conflicts.remove(clash.kept_as)
    copy.files.forget()
    return ResolveResult(record.path, how, record.kept_as, trash, trash is not None, renamed=True)


def _with_inside(copy: WorkingCopy, record: RecordedConflict) -> list[RecordedConflict]:
    """Return the record of a conflict. If its copy is a directory, also return the records of conflicts whose
    copies are in that directory."""
    return [clash for clash in copy.db.conflicts.list() if is_inside(clash.kept_as, record.kept_as)]


def end(copy: WorkingCopy, conflict: OpenConflict) -> ResolveResult:
    """Delete the record of a conflict whose copy was deleted. Returns the result that is shown to the
    user."""
    with copy.db.step():
        copy.db.conflicts.remove(conflict.record.kept_as)
    return ResolveResult(conflict.record.path, "gone", conflict.record.kept_as)
