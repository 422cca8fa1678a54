"""Plans and computes edits of a document, which is stored as numbered updates. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from localstore.core.document.content import encode, to_canonical_json
from localstore.core.document.document import YjsDocument
from localstore.core.errors import Invalid
from localstore.core.model.document import DocumentBaseGone
from localstore.core.model.limits import DOCUMENT_UPDATES

HEAD_WRITER = 1  # the client that wrote all edits of a newest version


class StoredUpdate(NamedTuple):
    """A stored update of a document with its number, or a snapshot that joins all updates up to that
    number."""

    number: int
    operations: bytes


class PlannedEdit(NamedTuple):
    """An edit that is still to be computed by `work_out`. `content`: what the document becomes. `base`: the
    Yjs operations that make up the version that was edited; `later`: the operations stored after that
    version. `number`: the number of the resulting update. `joined`: how many of the oldest operations are
    joined into one snapshot."""

    content: Any
    base: Sequence[bytes]
    later: Sequence[bytes]
    number: int
    joined: int


class ComputedEdit(NamedTuple):
    """An edit that `work_out` has computed. `operations`: the new update, in the encoding of Yjs. `content`:
    the document after it, as JSON. `snapshot`: the joined operations, None if none were joined."""

    operations: bytes
    content: bytes
    snapshot: bytes | None


def plan(content: Any, stored: Sequence[StoredUpdate], base: int, number: int) -> PlannedEdit:
    """The edit that changes version `base` to `content` and becomes update `number`. `content`: a result of
    `content.check_content`; `stored`: the stored updates of the document. If `number` is a multiple of
    DOCUMENT_UPDATES, all but the last DOCUMENT_UPDATES updates are joined into one. Raises Invalid for a
    version that does not exist, DocumentBaseGone for a version that was joined with others."""
    if base >= number:
        raise Invalid(f"the document has no version {base}; its newest is {number - 1}", pointer="/base")
    if stored and base < stored[0].number:
        raise DocumentBaseGone(
            f"version {base} is too old: only the changes after version {stored[0].number} are kept one by "
            "one; read the document again and repeat the edit"
        )
    begun = sum(update.number <= base for update in stored)
    joined = 0
    if number % DOCUMENT_UPDATES == 0:
        joined = sum(update.number <= number - DOCUMENT_UPDATES for update in stored)
    operations = [update.operations for update in stored]
    return PlannedEdit(content, operations[:begun], operations[begun:], number, joined)


def work_out(edit: PlannedEdit) -> ComputedEdit:
    """Compute an edit: make operations that change its base to its content, and merge them with the later
    operations. Raises TooLarge if the result exceeds a limit, DocumentDamaged if the stored operations cannot
    be read."""
    # Each client counts its items. The one of the newest versions can go on only where it stopped; an edit of
    # an earlier version gets a client of its own.
    writer = HEAD_WRITER + edit.number if edit.later else HEAD_WRITER
    document = YjsDocument(writer, edit.base)
    operations = document.write(edit.content)
    if edit.later:
        for update in edit.later:
            document.apply(update)
        _, json = to_canonical_json(document.content())
    else:
        json = encode(edit.content)
    snapshot = None
    if edit.joined:
        snapshot = YjsDocument(HEAD_WRITER, [*edit.base, *edit.later][: edit.joined]).state()
    return ComputedEdit(operations, json, snapshot)


def merge_edits(base: Any, first: Any, second: Any) -> Any:
    """The content after both edits of `base`: the edit to `first` and the edit to `second`. All three are
    results of `content.check_content`. Raises TooLarge if the result exceeds a limit, DocumentDamaged if the
    library fails."""
    same = encode(base)
    if encode(first) in (same, encode(second)):
        return second
    if encode(second) == same:
        return first
    stored: list[StoredUpdate] = []
    for number, (content, edited) in enumerate(((base, 0), (first, 1), (second, 1)), 1):
        outcome = work_out(plan(content, stored, edited, number))
        stored.append(StoredUpdate(number, outcome.operations))
    return msgspec.json.decode(outcome.content)
