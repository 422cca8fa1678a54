"""`svc revert`: undoes the change of one seal, as an edit of the folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from localstore.core.diff.text_merge import merge
from localstore.core.encoding import digest
from localstore.core.errors import Conflict, UsageError
from localstore.core.model.limits import TEXT_FILE
from localstore.core.words import first_line
from localstore.folder.files import Content
from localstore.folder.stat_cache import Stat
from localstore.record.database import SealedFile
from localstore.sync import verify
from localstore.sync.settle import recover
from localstore.sync.working_copy import WorkingCopy
from svc.flows.common import tree_of
from svc.flows.restore import contents_of, replace_files, require_room


class RevertResult(msgspec.Struct):
    """The result of a revert. `subject` is the first line of the seal's message. `written` and `removed` are
    paths. `trash` is the folder with the replaced files, or None if there are none."""

    seal: str
    subject: str
    written: list[str]
    removed: list[str]
    trash: Path | None = None


class _Plan(msgspec.Struct):
    """What a revert will do. `back` maps paths to the earlier version of their file, which is written.
    `merged` maps paths to the text to write. `removed` and `conflicts` are paths."""

    back: dict[str, SealedFile] = msgspec.field(default_factory=dict)
    merged: dict[str, bytes] = msgspec.field(default_factory=dict)
    removed: list[str] = msgspec.field(default_factory=list)
    conflicts: list[str] = msgspec.field(default_factory=list)


def revert(copy: WorkingCopy, seal: str) -> RevertResult:
    """Undo the change of a seal. Later changes are kept. Raises Conflict, which names the files, before
    anything is changed. Raises UsageError for a seal with two parents."""
    recover(copy)
    payload = verify.seal(copy.transport.seal(seal), seal, copy.repo.repo_id)
    if len(payload.parents) > 1:
        raise UsageError(
            f"the seal {seal[:12]} joins {len(payload.parents)} others; "
            "reverting such a seal is not in this version"
        )
    after = tree_of(copy, seal)
    before = tree_of(copy, payload.parents[0]) if payload.parents else {}
    plan = _plan_files(copy, before, after)
    if plan.conflicts:
        raise Conflict(
            f"later changes overlap with this seal's in {', '.join(plan.conflicts)}; nothing was changed; "
            f"look at both: svc show {seal[:12]}",
            paths=plan.conflicts,
        )
    require_room(copy, [*plan.back, *plan.merged], plan.removed)
    digests = {path: file.digest for path, file in plan.back.items()}
    digests |= {path: digest(text) for path, text in plan.merged.items()}
    trash = replace_files(copy, _contents(copy, plan), digests, plan.removed)
    subject = first_line(payload.message)
    return RevertResult(seal, subject, sorted(digests), plan.removed, trash)


def _contents(copy: WorkingCopy, plan: _Plan) -> Iterator[tuple[str, Content]]:
    yield from contents_of(copy, plan.back)
    yield from plan.merged.items()


def _plan_files(
    copy: WorkingCopy, before: Mapping[str, SealedFile], after: Mapping[str, SealedFile]
) -> _Plan:
    files = copy.scan().files
    plan = _Plan()
    for path in sorted({*before, *after}):
        was, sealed, mine = before.get(path), after.get(path), files.get(path)
        if _name(was) != _name(sealed) and _name(mine) != _name(was):
            _plan(copy, plan, path, was, sealed, mine)
    return plan


def _plan(
    copy: WorkingCopy,
    plan: _Plan,
    path: str,
    was: SealedFile | None,
    sealed: SealedFile | None,
    mine: Stat | None,
) -> None:
    """Plan what happens to one file that the seal changed. `was` is the file before the seal, `sealed` the
    file in the seal, and `mine` the file in the folder. None means that there is no file."""
    if _name(mine) == _name(sealed):
        if was is None:
            plan.removed.append(path)
        else:
            plan.back[path] = was
        return
    if was is None or sealed is None or mine is None or {was.kind, sealed.kind, mine.kind} != {"text"}:
        plan.conflicts.append(path)
        return
    outcome = merge(copy.text(sealed.digest), copy.files.read(path), copy.text(was.digest))
    if outcome.conflicts or len(outcome.text) > TEXT_FILE:
        plan.conflicts.append(path)
    elif digest(outcome.text) != mine.digest:
        plan.merged[path] = outcome.text


def _name(side: SealedFile | Stat | None) -> bytes | None:
    return side.digest if side is not None else None
