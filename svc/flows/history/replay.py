"""The history of one file in steps. A step is a live edit that was made before a seal, or the seal itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from localstore.core.diff.line_diff import lines, opcodes
from localstore.core.encoding import hex_digest
from localstore.core.errors import Forbidden, Invalid, NotFound
from localstore.core.lane.lane import Lane
from localstore.core.lane.update import decoded_ops
from localstore.core.model import history
from localstore.core.model.history import SealSummary, SealUpdate, UpdatesQuery
from localstore.core.model.limits import TEXT_FILE
from localstore.core.words import first_line
from svc.api import Api

UPDATES = 2_000  # of one seal, of all its files, that are read for the steps between


class HistoryStep(NamedTuple):
    """A state of a file in its history, and how it came about.

    `text` is None if there is no file, or if the file is not text. `live` says whether an edit made this
    state, before the seal; otherwise it is the state in the seal. `who` is a handle, `at` an RFC 3339 time.
    `lines` are the numbers, from 1, of changed and added lines. `removed` is the number of removed lines."""

    text: bytes | None
    seal: str
    message: str
    who: str
    at: str
    live: bool
    lines: tuple[int, ...] = ()
    removed: int = 0


def steps_of(api: Api, repo_id: str, path: str, seal: SealSummary, before: bytes | None) -> list[HistoryStep]:
    """Return the steps by which a file changed from the text `before` to its text in the seal. `before` is
    None if there was no file. Each edit that was made before the seal is a step, and the seal is the last
    step. If the author of the seal made the last edit, the two are one step.

    The seal is the only step if the user may not read edits, or if the edits do not lead exactly to the
    sealed text. Raises the errors of reading the sealed text."""
    sealed = _text(api, repo_id, seal.id, path)
    who = seal.provenance.who.handle or ""
    steps: list[HistoryStep] = []
    if before is not None and sealed is not None and before != sealed:
        steps = list(_steps_between(api, repo_id, path, seal, before, hex_digest(sealed)))
    if steps and steps[-1].who == who:
        steps.pop()  # who sealed it made it: one step
    last = steps[-1].text if steps else before
    changed, removed = compare_lines(last, sealed)
    message = first_line(seal.message)
    return [*steps, HistoryStep(sealed, seal.id, message, who, seal.created_at, False, changed, removed)]


def compare_lines(old: bytes | None, new: bytes | None) -> tuple[tuple[int, ...], int]:
    """Return the numbers, from 1, of the lines in `new` that `old` lacks, and the number of lines that were
    removed from `old`."""
    if old == new:
        return (), 0
    edits = opcodes(lines(old or b""), lines(new or b""))
    changed = tuple(number + 1 for edit in edits for number in range(edit.new_start, edit.new_end))
    return changed, sum(
        max(0, edit.old_end - edit.old_start - (edit.new_end - edit.new_start)) for edit in edits
    )


def _text(api: Api, repo_id: str, seal_id: str, path: str) -> bytes | None:
    try:
        blob = api.send(history.BLOB, id=repo_id, sha=seal_id, path=path)
    except NotFound:
        return None
    if blob.encoding != "utf-8" or blob.content is None:
        return None
    return blob.content.encode()


def _steps_between(
    api: Api, repo_id: str, path: str, seal: SealSummary, before: bytes, sealed: str
) -> Iterator[HistoryStep]:
    """Yields a step for each edit of one file that was made before the seal. `before` is the text before
    these edits, and `sealed` the digest of the text in the seal. Yields nothing if the edits do not lead from
    the one text to the other."""
    steps: list[HistoryStep] = []
    text, lane, named = before, None, None
    try:
        for seal_update in _updates(api, repo_id, seal.id):
            if seal_update.path != path:
                continue
            update = seal_update.update
            if update is None or update.epoch is None:
                return  # replaced, removed or made anew: its text between is not known
            if lane is None or named != (update.gen, update.epoch):
                if len(text) > TEXT_FILE:
                    return
                named = (update.gen, update.epoch)
                lane = Lane.genesis(seal_update.branch_id, update.gen, update.epoch, text)
            for op in decoded_ops(update):
                lane.apply(op, seal_update.replica)
            after = lane.text()
            if after != text:
                changed, removed = compare_lines(text, after)
                who = seal_update.who.handle or ""
                steps.append(HistoryStep(after, seal.id, "", who, seal_update.at, True, changed, removed))
                text = after
    except (Invalid, Forbidden, NotFound):
        return
    if hex_digest(text) == sealed:
        yield from steps


def _updates(api: Api, repo_id: str, seal_id: str) -> Iterator[SealUpdate]:
    """Yields all live updates (edits of any file) that the seal includes. Raises Invalid if there are more
    than UPDATES."""
    updates = api.items(history.SEAL_UPDATES, UpdatesQuery(), id=repo_id, seal_id=seal_id)
    for count, update in enumerate(updates):
        if count >= UPDATES:
            raise Invalid("more updates than are read")
        yield update
