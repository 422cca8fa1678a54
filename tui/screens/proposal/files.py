"""The screen with the changes of a proposal: its files, and their changed lines against its base."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.timer import Timer

from localstore.core.errors import SvcError
from localstore.core.model.history import ChangedFile, Compare
from localstore.core.model.proposal import Proposal
from localstore.core.model.repo import Repo
from localstore.core.model.thread import Thread
from tui import contents
from tui.actions import Action
from tui.screens.base import TWO_PANES
from tui.screens.code.differing import DIFF_ACTIONS, Differing
from tui.screens.proposal.notes import notes
from tui.screens.proposal.remarks import REMARKS, Remarking
from tui.screens.proposal.review import VERDICTS, Reviewing
from tui.screens.proposal.seen import Seen
from tui.screens.proposal.tree import Changes, FileTree, Place, TreeRows, counts_of, sign_of
from tui.screens.split import REST, STEP
from tui.text import Part, safe
from tui.texts import Texts
from tui.theme import css_colour
from tui.widgets.coloured_file import TEXT_MAX, FileColours, colours_of
from tui.widgets.diff import Diff
from tui.widgets.frame import Line
from tui.widgets.lines import Lines

GLIMPSE = 128 * 1024  # characters of a patch that are shown while the cursor is among the files
SHARE, LEAST = 30, 30  # hundredths of the width that the files take, and columns at least


_TREE = (
    Action("tree", ("f",), "files", footer=True),
    Action("hide_tree", ("P",), "hide or show the files"),
    Action("narrower", ("less_than_sign",), "narrower files"),
    Action("wider", ("greater_than_sign",), "wider files"),
)
_DIFF = tuple(
    replace(action, label="seen", footer=True) if action.id == "seen" else action for action in DIFF_ACTIONS
)


class Files(Remarking, Differing):
    """The files of a proposal as a tree, beside the changes of the file under the cursor. On a screen of less
    than 100 columns only the changes are shown, and a key shows the files instead."""

    DEFAULT_CSS = """
    Files FileTree { height: 1fr; }
    Files #changes { width: 1fr; height: 1fr; }
    """
    ACTIONS: tuple[Action, ...] = (
        *_TREE,
        *_DIFF,
        *REMARKS,
        *VERDICTS,
        Action("machine", (), "this machine: models, apps", "svc llm status"),
        Action(
            "merge", ("M",), "merge", "svc pr merge {n} --squash", "signed_in", right="proposal.merge_prepare"
        ),
    )

    def __init__(self, repo: Repo, proposal: Proposal, path: str = "") -> None:
        super().__init__()
        self.repo, self._one, self._path = repo, proposal, path
        self._texts = Texts(self, self._paint_notes)
        self._changes = Changes()
        self._folded: set[str] = set()  # folders
        self._hides = self._covers = False  # whether the tree is hidden; covers the changes
        self._rests: Timer | None = None
        self._coloured = ""  # the path whose colours were asked for
        self._opened_at = 0.0  # by the monotonic clock; a key since then may have moved the focus
        self._seen: Seen | None = None

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, self._one.author.handle == self.svc.client.account

    def facts(self) -> dict[str, str]:
        return {"pr": str(self._one.number), "seal": self._one.head_seal}

    def content(self) -> ComposeResult:
        with Horizontal(classes="row"):
            yield FileTree(empty="no difference", waiting="asking the server", id="tree")
            with Vertical(id="changes"):
                yield Line(id="file")
                yield Diff(id="diff", heads=False)

    def title_parts(self) -> Sequence[Part]:
        count, seen = len(self._changes), len(self._seen.paths) if self._seen is not None else 0
        open_threads = sum(self._open_threads().values())
        words = f"{seen}/{count} seen  " if count else ""
        talk = f"{open_threads} open thread{'' if open_threads == 1 else 's'}  " if open_threads else ""
        pending = self.pending()
        pending_words = (
            f"{pending} pending  " if pending else "comments wait for A, X or S  " if self._keeps else ""
        )
        name = f" {safe(self.repo.full_name)} #{self._one.number} files"
        return (
            (name, "title"),
            ("  ", "text"),
            (pending_words, "warn"),
            (words, "dim"),
            (talk, "accent"),
            (safe(self._one.title), "text"),
        )

    def on_mount(self) -> None:
        super().on_mount()
        self._seen = Seen(self.svc.client, self.repo.id, self._one.number)
        self.place()
        if not self.beside or self._path:  # else the files have it already
            self.set_focus(self.diff)
        self._opened_at = time.monotonic()
        self.do_refresh()

    def on_resize(self) -> None:
        self.place()

    def do_merge(self) -> None:
        """Go back to the proposal, and open its merge card."""
        below = self.below
        if isinstance(below, Reviewing):
            self.app.pop_screen()
            below.do_merge()

    def do_refresh(self) -> None:
        proposal = self._one
        self._load_changes()
        self.svc.load(contents.proposal(self.repo.id, proposal.number), self._paint_one)
        self.svc.load(contents.threads(self.repo.id, proposal.number), self._paint_threads)

    def _load_changes(self) -> None:
        proposal = self._one
        self.svc.load(contents.changes(self.repo.id, proposal.base_seal, proposal.head_seal), self._paint)

    def _paint_one(self, proposal: Proposal, at: float) -> None:
        before, self._one = self._one, proposal
        if (proposal.base_seal, proposal.head_seal) != (before.base_seal, before.head_seal):
            self._coloured = ""
            self.diff.colours.clear()
            self._load_changes()
            if proposal.head_seal != before.head_seal:
                self.tell("somebody pushed: this is the newest version")
        self.show_frame()

    def _paint(self, compare: Compare, at: float) -> None:
        current = self._shown()
        path = self._path or (current.path if current is not None else "")
        first = not len(self._changes)
        self._changes, self._path = Changes(compare.files), ""
        if self._seen is not None:
            self._seen.compare(compare.files, self._one.head_seal)
        self._paint_tree()
        place = self._changes.place_of.get(path)
        if place is None:
            place = self._next_unseen(-1)
        if len(self._changes):
            self.show_file(place or 0)
        else:
            self.diff.show_files(())
        if first and len(self._changes) == 1 and self.svc.key_at < self._opened_at:
            self.set_focus(self.diff)
        self.show_frame()

    def _paint_threads(self, threads: list[Thread], at: float) -> None:
        before, self._threads = self.pending(), threads
        self._keeps = self.pending() > 0 or (self._keeps and not before)  # a review ends the keeping
        self.show_frame()
        self._paint_notes()
        self._paint_tree()

    def _paint_notes(self) -> None:
        if self._threads is None:
            return
        current = self._shown()
        listed = [
            thread
            for thread in self._threads
            if current is not None and thread.place is not None and thread.place.path == current.path
        ]
        self.diff.show_notes(lambda rooms: notes(listed, self._texts.rows, self.svc.clock(), rooms))

    def _open_threads(self) -> dict[str, int]:
        """The number of open threads in each file now, by path."""
        return Counter(
            thread.place.path
            for thread in self._threads or ()
            if thread.state == "open" and thread.place is not None
        )

    def _paint_tree(self) -> None:
        seen = self._seen.paths if self._seen is not None else set()
        self.listing.show(TreeRows(self._changes, self._folded, seen, self._open_threads()))
        self._say_where()

    @property
    def diff(self) -> Diff:
        return self.query_one("#diff", Diff)

    @property
    def listing(self) -> FileTree:
        return self.query_one("#tree", FileTree)

    # --- panes

    @property
    def beside(self) -> bool:
        """Whether the list of files is beside the changes."""
        return self.app.size.width >= TWO_PANES and not self._hides

    def place(self) -> None:
        """Show the panes that fit: one, or two with frames."""
        if not self.query("#tree"):
            return
        tree, changes, beside = self.listing, self.query_one("#changes"), self.beside
        wide = self.app.size.width >= TWO_PANES
        self._covers = self._covers and not beside
        tree.display, changes.display = beside or self._covers, beside or not self._covers
        share = self.svc.shares.get("files", SHARE)
        tree.styles.width = max(LEAST, self.app.size.width * share // 100) if beside else "1fr"
        self.query_one("#file").display = not wide
        for lines in (tree, self.diff):
            colour = css_colour(self.svc.colours, "accent" if lines.has_focus else "line")
            lines.styles.border = ("round", colour) if wide else None
        self._say_where()

    def on_descendant_focus(self) -> None:
        self.place()
        self.listing.refresh()
        file = self._shown()
        if self.diff.has_focus and file is not None and file != self.diff.files[0]:
            self.diff.show_files([file])  # all of it

    def _shown(self) -> ChangedFile | None:
        """The file whose changes are on the screen; None if there is none."""
        place = self._changes.place_of.get(self.diff.files[0].path) if self.diff.files else None
        return self._changes.file(place) if place is not None else None

    def _position(self) -> str:
        current = self._shown()
        count, seen = len(self._changes), len(self._seen.paths) if self._seen is not None else 0
        place = self._changes.place_of.get(current.path, 0) + 1 if current is not None else 0
        return f"{place} of {count} file{'' if count == 1 else 's'}, {seen} seen" if count else ""

    def _say_where(self) -> None:
        """Write the name of the file and the cursor's position into the frames, or without frames into the
        line above the changes."""
        if not self.query("#diff"):
            return
        current, diff, tree = self._shown(), self.diff, self.listing
        position = self._position()
        tree.name_frame("Files", position)
        if current is None:
            diff.name_frame("", "")
            return
        seen: Part = (
            "  ✓ seen" if self._seen is not None and current.path in self._seen.paths else "",
            "good",
        )
        moved = current.old_path if current.old_path != current.path else None
        was = f"{safe(moved)} → " if moved else ""
        name: Part = (f" {was}{safe(current.path)}  ", "title")
        counts = counts_of(current)
        words = f"{sign_of(current)[0]}{name[0]}{''.join(text for text, _ in counts)}{seen[0]}"
        hunk, hunks = diff.hunk_position
        diff.name_frame(words, f"hunk {hunk} of {hunks}" if hunks else "")
        rule: Part = ("── ", "line")
        self.query_one("#file", Line).put(
            (rule, sign_of(current), name, *counts, seen), ((position, "dim"), (" ──", "line"))
        )

    def on_lines_moved(self, event: Lines.Moved) -> None:
        """Called when a cursor has moved. Once the tree's cursor rests on a file, its changes are shown."""
        if event.lines is self.listing:
            if self._rests is not None:
                self._rests.stop()
            self._rests = self.set_timer(REST, self._show_rested) if self.beside else None
        self._say_where()

    def _show_rested(self) -> None:
        key = self.listing.key
        if self.in_front and isinstance(key, Place) and key.kind == "file":
            place = self._changes.place_of.get(key.path)
            current = self._shown()
            if place is not None and (current is None or current.path != key.path):
                self.show_file(place, follow=False)

    def show_file(self, place: int, *, end: bool = False, follow: bool = True) -> None:
        """Show the changes of the file at this place in the order of the tree. `end`: the cursor begins on
        the last row. `follow`: the tree's cursor moves to the file."""
        file, diff, before = self._changes.file(place), self.diff, self._shown()
        diff.empty = _without_lines(file, self._one.number)
        if diff.selects:
            diff.select()
        if follow:
            self._unfold(file.path)
            self.listing.go_to(Place("file", file.path))
        diff.show_files([self._glimpse(file) if self.listing.has_focus else file])
        self._paint_notes()
        if before is None or before.path != file.path:
            diff.top = diff.shift = 0
            diff.go(len(diff.rows) - 1 if end else 0, -1 if end else 1)
        self._say_where()
        self._ask_for_colours(file)

    def _glimpse(self, file: ChangedFile) -> ChangedFile:
        """The file with only the beginning of its changes, if they are very long. Their other rows are made
        once the cursor is among them."""
        patch = file.patch or ""
        if len(patch) <= GLIMPSE:
            return file
        return replace(file, patch=patch[: patch.rfind("\n", 0, GLIMPSE)])

    def _unfold(self, path: str) -> None:
        folders = {folder for folder in self._folded if path.startswith(f"{folder}/")}
        if folders:
            self._folded -= folders
            self._paint_tree()

    # --- colours

    def _ask_for_colours(self, file: ChangedFile) -> None:
        """Find the roles (keyword, string, …) of the words in a file, on a thread. Requests the whole new
        text, because the patch alone does not show where a comment or string begins."""
        is_known = file.path in self.diff.colours or self._coloured == file.path
        if is_known or file.patch is None or len(file.patch) > TEXT_MAX:
            return
        self._coloured = file.path
        client, head = self.svc.client, self._one.head_seal
        read = contents.file(self.repo.id, head, file.path)

        def work() -> None:
            text = None
            if file.status != "removed":
                with suppress(SvcError):
                    blob, _ = client.known(read) or client.fetch(read)
                    text = blob.content if blob.encoding == "utf-8" else None
            colours = colours_of(file, text)
            self.svc.later(lambda: self._learn(file, head, colours))

        self.svc.run_worker(work, thread=True, group="changes", exit_on_error=False)

    def _learn(self, file: ChangedFile, head: str, colours: FileColours) -> None:
        if self.is_attached and head == self._one.head_seal:
            self.diff.learn(file.path, colours)
        self._coloured = ""

    # --- files

    def do_tree(self) -> None:
        """Move the focus to the tree of files; from there, back to the changes."""
        if self.beside:
            self.set_focus(self.diff if self.listing.has_focus else self.listing)
            return
        if self.app.size.width >= TWO_PANES:
            self._hides = False
        else:
            self._covers = not self._covers
        self._show_pane(self.listing if self.beside or self._covers else self.diff)

    def _show_pane(self, lines: Lines) -> None:
        self.place()
        self.set_focus(lines)

    def do_pane(self) -> None:
        if self.beside:
            super().do_pane()
        else:
            self.do_tree()

    def do_hide_tree(self) -> None:
        if self.app.size.width < TWO_PANES:
            self.tell(f"the files stand beside the changes from {TWO_PANES} columns; f shows them")
            return
        self._hides = not self._hides
        self._show_pane(self.diff)

    def do_narrower(self) -> None:
        self._resize(-STEP)

    def do_wider(self) -> None:
        self._resize(STEP)

    def _resize(self, by: int) -> None:
        self.svc.shares["files"] = max(15, min(60, self.svc.shares.get("files", SHARE) + by))
        self.place()

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        key = event.key
        if isinstance(key, Place) and key.kind == "folder":
            self._fold(key.path)
        elif isinstance(key, Place):
            self.show_file(self._changes.place_of[key.path], follow=False)
            self._covers = False
            self._show_pane(self.diff)

    def _fold(self, path: str) -> None:
        self._folded.symmetric_difference_update({path})
        self._paint_tree()

    def do_left(self) -> None:
        """In the tree: fold the folder under the cursor, or move to the parent folder. In the changes: scroll
        left."""
        key = self.listing.key
        if not self.listing.has_focus or not isinstance(key, Place):
            super().do_left()
        elif key.kind == "folder" and key.path not in self._folded:
            self._fold(key.path)
        else:
            around = [entry.path for entry in self._changes.entries if entry.file < 0]
            inside = [path for path in around if key.path.startswith(f"{path}/")]
            if inside:
                self.listing.go_to(Place("folder", inside[-1]))

    def do_right(self) -> None:
        key = self.listing.key
        if not self.listing.has_focus or not isinstance(key, Place):
            super().do_right()
        elif key.kind == "folder" and key.path in self._folded:
            self._fold(key.path)
        else:
            self.listing.choose()

    def do_next_file(self) -> None:
        self._step_file(1)

    def do_previous_file(self) -> None:
        self._step_file(-1)

    def _step_file(self, by: int, *, end: bool = False) -> bool:
        """Show the next file (`by` 1), or the previous one (−1). Returns False if there is none."""
        current = self._shown()
        place = self._changes.place_of.get(current.path, 0) + by if current is not None else -1
        if not 0 <= place < len(self._changes):
            self.tell("this is the last file" if by > 0 else "this is the first file")
            return False
        self.show_file(place, end=end)
        return True

    def do_next_hunk(self) -> None:
        if not self.diff.jump("hunk", 1) and self._step_file(1):
            self.diff.jump("hunk", 1)

    def do_previous_hunk(self) -> None:
        if not self.diff.jump("hunk", -1) and self._step_file(-1, end=True):
            self.diff.jump("hunk", -1)

    def _next_unseen(self, place: int) -> int | None:
        """The place of the next file after `place` that is not marked as seen, continuing at the beginning;
        None if all are."""
        seen = self._seen.paths if self._seen is not None else set()
        count = len(self._changes)
        around = ((place + step) % count for step in range(1, count + 1))
        return next((at for at in around if self._changes.file(at).path not in seen), None)

    def do_seen(self) -> None:
        """Mark the file on the screen, or all files of the folder under the tree's cursor, as seen or not
        seen, and show the next file that is not seen."""
        current, key = self._shown(), self.listing.key
        if self._seen is None or current is None:
            return
        files = [current]
        if self.listing.has_focus and isinstance(key, Place):
            files = self._below(key)
        seen = not all(file.path in self._seen.paths for file in files)
        self._seen.mark(files, self._one.head_seal, seen=seen)
        self.svc.run_worker(self._seen.keep, thread=True, group="seen", exit_on_error=False)
        self._paint_tree()
        self.show_frame()
        if not seen:
            return
        following = self._next_unseen(self._changes.place_of[files[-1].path])
        if following is None:
            self.tell("all files are seen: A approves, X requests changes")
        else:
            self.show_file(following)

    def _below(self, key: Place) -> list[ChangedFile]:
        """The file of a row of the tree; for a folder, all files below it."""
        is_folder = key.kind == "folder"
        entries = self._changes.entries
        row = next(entry for entry in entries if entry.path == key.path and (entry.file < 0) == is_folder)
        return [self._changes.file(place) for place in range(row.first, row.last)]

    def do_half_down(self) -> None:
        """Scroll half a page down; at the end of a file, show the next file."""
        if self.lines is self.diff and self.diff.cursor >= len(self.diff.rows) - 1:
            self._step_file(1)
        else:
            super().do_half_down()

    def do_half_up(self) -> None:
        if self.lines is self.diff and not self.diff.cursor:
            self._step_file(-1, end=True)
        else:
            super().do_half_up()

    # --- search in all files

    def _search(self, step: int) -> None:
        """Go to the next match of the search, or with -1 to the previous one, also in other files."""
        words = self.diff.sought
        if self.lines is self.listing or not words:
            super()._search(step)
            return
        current, cursor = self._shown(), self.diff.cursor
        if self.diff.search(step) and (self.diff.cursor - cursor) * step > 0:
            return
        begin = self._changes.place_of.get(current.path, 0) if current is not None else 0
        count = len(self._changes)
        for away in range(1, count):
            place = (begin + away * step) % count
            if words in (self._changes.file(place).patch or "").casefold():
                self.show_file(place, end=step < 0)
                if words in self.diff.text_at(self.diff.cursor) or self.diff.search(step):
                    return
        if not self.diff.search(step):
            self.say("nothing matches; type what to look for: /", "warn")

    def do_back(self) -> None:
        if self.diff.selects:
            self.diff.select()
        elif self._covers:
            self.do_tree()
        else:
            super().do_back()


def _without_lines(file: ChangedFile, number: int) -> str:
    """The note that is shown for a file whose changes have no lines. `number`: of the proposal."""
    if file.binary:
        return "a binary file"
    if file.patch is None:
        return f"too large to be shown here: svc pr diff {number}"
    return "its text is the same" if file.status == "renamed" else "no lines differ"
