"""Finds the lines that a save of an old buffer would delete by mistake.

An editor that does not reload a file saves the text that it once loaded, with the user's changes. Compared
with the file on the disk, such a save deletes everything that arrived since the editor loaded the file. So
the save must be compared with the text that the editor had loaded.

That text is one of the file's texts of the last ten minutes: the one that the save changes least. If several
fit equally, it is the newest. An editor can have loaded only a text that a program has read, the first text
(which was saved here), or the text of an editor plugin. If the same text is saved again, the save is applied
unchanged.

A plugin also sends each typed change, so while an agent runs, the plugin's saves are no edits. Without an
agent, the text that the plugin showed is in the record (`localstore.sync.plugin_texts`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from localstore.core.diff import line_diff
from localstore.core.diff.text_edits import edits, keeps
from localstore.core.encoding import digest
from localstore.core.errors import SvcError
from localstore.record.arrivals import Arrivals, TextVersion
from localstore.record.entry import PathRecord
from localstore.sync.plugin_texts import has_what_was_typed
from localstore.sync.working_copy import WorkingCopy

MEMORY = 600_000  # ms for which a replaced text is a candidate
VERSIONS = 32  # candidates for one file


class KeptLines(msgspec.Struct, frozen=True):
    """Lines that stay in a file although a save of an old buffer lacked them. `lines`: how many; `by`:
    handles of their authors."""

    path: str
    lines: int
    by: list[str]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Editors(Protocol):
    """Knows the programs that send typed changes of a text and may also save its file: editor plugins and
    open sheets."""

    def edits(self, path: str) -> bool:
        """Whether a program has the text of the file at this path open."""

    def shows(self, path: str, name: bytes) -> bool:
        """Whether a program shows the text with the BLAKE3 digest `name` for this file, or did so a moment
        ago."""

    def plugin_texts(self, path: str) -> list[bytes]:
        """A text for each editor plugin that has the file open. It is the text that the plugin showed after
        the newest of its changes that became an edit."""


class NoEditors:
    """Takes the place of `Editors` where no program sends typed changes."""

    def edits(self, path: str) -> bool:
        return False

    def shows(self, path: str, name: bytes) -> bool:
        return False

    def plugin_texts(self, path: str) -> list[bytes]:
        return []


class Buffers:
    """Knows, for the files of one working copy, the earlier texts that editors may still show. `was_read`: a
    function that returns whether a program has read the file since svc wrote it. `kept`: the lines that stay
    although saves of old buffers lacked them."""

    def __init__(self, was_read: Callable[[str], bool], now: Callable[[], int] = now_ms) -> None:
        self._was_read, self._now = was_read, now
        self.editors: Editors = NoEditors()
        self._strange: set[str] = set()  # paths whose last save is no text that an editor showed
        self.authors: dict[str, str] = {}  # path → author of the edit that is being written
        self.kept: list[KeptLines] = []

    def attach(self, copy: WorkingCopy) -> None:
        """Observe this working copy from now on. It then reports each edit that it captures and each file
        that it writes, and counts as synced live."""

        def note_placed(path: str, before: bytes | None, new: bytes) -> None:
            self._note_placed(copy, path, before, new)

        def rebase(entry: PathRecord, name: bytes, data: bytes) -> None:
            self._rebase_saved(copy, entry, name, data)

        copy.placed, copy.rebase, copy.live = note_placed, rebase, True

    def attach_saves(self, copy: WorkingCopy) -> None:
        """Make a command capture saves in `copy` as an agent does, so that a save becomes the same edit
        whichever process finds it. This affects only files whose texts an agent recorded recently."""

        def note_placed(path: str, before: bytes | None, new: bytes) -> None:
            if copy.db.arrivals.get(path) is not None:
                self._note_placed(copy, path, before, new)

        copy.placed = note_placed
        copy.rebase = lambda entry, name, data: self._rebase_saved(copy, entry, name, data)

    def forget_reads(self, copy: WorkingCopy) -> None:
        """Mark every recorded text as read by a program, because reads could not be detected for a while.
        Also drops old texts."""
        since = self._now() - MEMORY
        with copy.db.step():
            for path, arrivals in copy.db.arrivals.all():
                if arrivals.versions[-1].at < since:
                    copy.db.arrivals.drop(path)
                    continue
                for version in arrivals.versions:
                    version.read = True
                copy.db.arrivals.put(path, arrivals)

    def moved_aside(self, copy: WorkingCopy, path: str, mine: bytes, current: bytes) -> None:
        """Record the recent texts of a file that a conflict has changed. `mine`: the text before, which is in
        a conflict copy now; `current`: the text now."""
        versions = [
            TextVersion(mine, self._now()),
            TextVersion(current, self._now(), False, self.authors.get(path, "")),
        ]
        copy.db.arrivals.put(path, Arrivals(versions))

    def record_typed(self, copy: WorkingCopy, path: str) -> None:
        """Record the text that each editor of a file shows, after one of them made an edit. This is part of
        the transaction that records the edit, because the editor still shows its text if the agent is
        killed right afterwards."""
        entry, texts = copy.entries.get(path), self.editors.plugin_texts(path)
        if not texts or entry is None or entry.shadow is None:
            return
        now = self._now()
        arrivals = copy.db.arrivals.get(path) or Arrivals([TextVersion(entry.shadow, now)])
        copy.objects.add([(digest(text), text) for text in texts])
        arrivals.plugin_texts, arrivals.saved = [TextVersion(digest(text), now) for text in texts], None
        copy.db.arrivals.put(path, arrivals)

    def _note_placed(self, copy: WorkingCopy, path: str, before: bytes | None, new: bytes) -> None:
        self._strange.discard(path)
        entry = copy.entries.get(path)
        if before is None or before == new or entry is None or entry.kind != "text":
            return
        arrivals = copy.db.arrivals.get(path) or Arrivals([TextVersion(before, self._now())])
        last = arrivals.versions[-1]
        if last.digest != before:  # another process wrote in between
            arrivals.versions.append(TextVersion(before, self._now()))
        elif len(arrivals.versions) > 1:
            last.read = last.read or self._was_read(path) or self.editors.edits(path)
            if not last.read:
                arrivals.versions.pop()
        arrivals.versions.append(TextVersion(new, self._now(), False, self.authors.get(path, "")))
        if len(arrivals.versions) > VERSIONS:
            del arrivals.versions[1:-1:2]
        copy.db.arrivals.put(path, arrivals)

    def _rebase_saved(self, copy: WorkingCopy, entry: PathRecord, name: bytes, data: bytes) -> None:
        """Set the entry's shadow to the text that a save was made from, which may be older than the file. The
        edit is the difference between this text and the save. `data`: the saved text; `name`: its BLAKE3.
        Called when the save is captured."""
        if self.editors.edits(entry.path) and self._was_typed(entry.path, name):
            copy.objects.add([(name, data)])
            entry.shadow = name
            return
        arrivals = copy.db.arrivals.get(entry.path)
        if arrivals is not None:
            copy.db.arrivals.drop(entry.path)
        if arrivals is None or arrivals.versions[-1].digest != entry.shadow:
            return
        if len(arrivals.versions) < 2 and not arrivals.plugin_texts:
            return
        if arrivals.saved == name and len(arrivals.versions) > 1:
            base = arrivals.versions[1]
        else:
            last = arrivals.versions[-1]
            last.read = last.read or self._was_read(entry.path) or self.editors.edits(entry.path)
            held = _find_loaded_text(copy, arrivals, data, self._now() - MEMORY)
            if held is None:
                return
            base = held
            self._note(copy, entry.path, arrivals.versions, base)
            copy.db.arrivals.put(entry.path, Arrivals([TextVersion(name, self._now())], saved=name))
        entry.shadow = base.digest

    def _was_typed(self, path: str, name: bytes) -> bool:
        """Whether everything in a save of the file was also sent as typed changes, so that the save is no
        edit. `name`: BLAKE3 of the saved text. After a save of any other text, the next save counts as an
        edit too."""
        if not self.editors.shows(path, name):
            self._strange.add(path)
            return False
        if path in self._strange:
            self._strange.discard(path)
            return False
        return True

    def _note(self, copy: WorkingCopy, path: str, versions: list[TextVersion], held: TextVersion) -> None:
        old, new = copy.text(held.digest), copy.text(versions[-1].digest)
        changed = line_diff.opcodes(line_diff.lines(old), line_diff.lines(new))
        lines = sum(max(hunk[3] - hunk[2], hunk[1] - hunk[0]) for hunk in changed)
        later = versions[versions.index(held) + 1 :] if held in versions else versions
        by = sorted({version.by for version in later if version.by})
        self.kept.append(KeptLines(path, lines, by))


def _find_loaded_text(copy: WorkingCopy, arrivals: Arrivals, data: bytes, since: int) -> TextVersion | None:
    """Finds the text that an editor had loaded before its user changed it to `data`. This is an earlier text
    of the file, or a text that an editor plugin showed. Returns None if it is the text that is on the disk.
    `since`: texts that were replaced before this time (milliseconds) are left out."""
    versions = arrivals.versions
    last = versions[-1]
    held = [
        version
        for at, version in enumerate(versions[:-1])
        if (at == 0 or version.read) and versions[at + 1].at >= since
    ]
    plugin_texts = [version for version in arrivals.plugin_texts if version.at >= since]
    texts = _texts(copy, [*held, *plugin_texts, last])
    if last.digest not in texts:
        return None
    newest = texts[last.digest]
    if not last.read and not all(keeps(text, newest, data) for text in texts.values() if text != newest):
        del texts[last.digest]  # unread, so no editor holds it
    for typed in [texts[version.digest] for version in plugin_texts if version.digest in texts]:
        for name, text in list(texts.items()):
            if has_what_was_typed(text, typed, data):
                del texts[name]
    costs = {name: (_cost(text, data), -age) for age, (name, text) in enumerate(texts.items())}
    best = min(costs, key=lambda name: costs[name])
    return (
        None
        if best == last.digest
        else next(version for version in [*held, *plugin_texts] if version.digest == best)
    )


def _texts(copy: WorkingCopy, versions: Iterable[TextVersion]) -> dict[bytes, bytes]:
    """Reads the texts of these versions. Returns them by digest, in the order of the versions. If a text
    occurs twice, it comes at the place of the last occurrence. Texts that are not available are left out."""
    texts: dict[bytes, bytes] = {}
    for version in versions:
        texts.pop(version.digest, None)
        try:
            texts[version.digest] = copy.text(version.digest)
        except SvcError:
            continue  # neither the record nor the relay has it
    return texts


def _cost(old: bytes, new: bytes) -> int:
    """How many bytes the change from `old` to `new` deletes and inserts. A word that is changed in part
    counts as a whole, because two words that share some letters need not be related."""
    cost = reached = 0
    for offset, deleted, inserted in edits(old, new):
        start, end = offset, offset + deleted
        if _is_word(old[start:end][:1]) or _is_word(inserted[:1]):
            while start > reached and _is_word(old[start - 1 : start]):
                start -= 1
        reached = end
        if _is_word(old[start:end][-1:]) or _is_word(inserted[-1:]):
            while _is_word(old[reached : reached + 1]):
                reached += 1
        cost += deleted + len(inserted) + 2 * (offset - start + reached - end)
    return cost


def _is_word(byte: bytes) -> bool:
    """Whether the byte is part of a word. Bytes outside ASCII always count as part of a word."""
    return byte.isalnum() or byte == b"_" or byte >= b"\x80"
