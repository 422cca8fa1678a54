"""The base of screens that show changed files: a tree of the files and, beside it, the changes of one
file."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.geometry import Region
from textual.timer import Timer

from localstore.core.model.history import ChangedFile, Compare
from localstore.core.model.repo import Repo
from localstore.core.words import count
from tui.actions import Action
from tui.changed import counts_of, glimpse_of, sign_of
from tui.screens.base import TWO_PANES
from tui.screens.code.changed_bytes import ChangedBytes
from tui.screens.code.changed_tree import Changes, FileTree, TreeKey, TreeRows
from tui.screens.code.differing import DIFF_ACTIONS, Differing
from tui.screens.split import REST, STEP
from tui.text import Part, safe
from tui.widgets.diff import BESIDE, Diff
from tui.widgets.frame import Line
from tui.widgets.framed import draw_frame
from tui.widgets.lines import Lines
from tui.widgets.picture import Picture

SHARE, LEAST = 30, 30  # hundredths of the width that the files take, and columns at least
FRAME = 4  # columns of the frame of the changes, with a blank at each side
MOST = 48  # columns of the files at most, unless the user makes them wider
NO_THREADS: Mapping[str, int] = MappingProxyType({})

_TREE = (
    Action("tree", ("f",), "files", footer=True),
    Action("hide_tree", ("P",), "hide or show the files"),
    Action("narrower", ("less_than_sign",), "narrower files"),
    Action("wider", ("greater_than_sign",), "wider files"),
)
_DIFF = tuple(
    replace(action, label="seen", footer=True) if action.id == "seen" else action for action in DIFF_ACTIONS
)
CHANGES = (*_TREE, *_DIFF)


class ChangedFiles(Differing, ChangedBytes):
    """A screen with changed files as a tree, and the changes of the file under the cursor beside it. On less
    than 100 columns it shows only the changes, and a key switches to the tree. Subclasses define `new_seal`,
    request the changes, and pass them to `show_changes`."""

    DEFAULT_CSS = """
    ChangedFiles FileTree { height: 1fr; }
    ChangedFiles #changes { width: 1fr; height: 1fr; }
    """
    ALL_SEEN = "all files are seen"
    KEEPS_ESC = True

    def __init__(self, repo: Repo, path: str = "") -> None:
        """Makes the screen. `path`: the file whose changes are shown first, "" for the first file that is not
        marked as seen."""
        super().__init__()
        self.repo, self._path = repo, path
        self._changes = Changes()
        self._folded: set[str] = set()  # folders
        self._hides = self._covers = False  # whether the tree is hidden; covers the changes
        self._rests: Timer | None = None
        self._opened_at = 0.0  # by the monotonic clock; a key since then may have moved the focus
        self._marked: set[str] = set()  # paths of files that were marked as seen

    # --- what a subclass gives

    @property
    def new_seal(self) -> str:
        """The id of the seal that contains the files after the changes."""
        raise NotImplementedError

    def shows_seal(self, seal: str) -> bool:
        return seal == self.new_seal

    @property
    def seen_paths(self) -> Collection[str]:
        """The paths of the files that are marked as seen."""
        return self._marked

    def mark_seen(self, files: Sequence[ChangedFile], seen: bool) -> None:
        """Mark files as seen or, if `seen` is False, as not seen."""
        paths = {file.path for file in files}
        self._marked = self._marked | paths if seen else self._marked - paths

    def open_threads(self) -> Mapping[str, int]:
        """Returns the number of open threads in each file, by path."""
        return NO_THREADS

    def paint_notes(self) -> None:
        """Paint the threads below the lines of the file on the screen. Does nothing in this class. Subclasses
        with threads override it."""

    def whole_diff(self) -> str:
        """Returns the command line that prints changes which are too large for the screen."""
        raise NotImplementedError

    def label_of(self, action: Action) -> str:
        """Returns the label of an action in the line of keys. For enter it depends on the row of the tree:
        fold or unfold a folder, or show the changes of a file."""
        label = super().label_of(action)
        if action.id != "open" or not label:
            return label
        key = self.listing.key
        if self.lines is not self.listing or not isinstance(key, TreeKey):
            return ""
        return "its changes" if key.kind != "folder" else "unfold" if key.path in self._folded else "fold"

    # --- the screen

    def files_and_changes(self) -> ComposeResult:
        """Returns the widgets: the tree of files, and the changes of one file."""
        with Horizontal(classes="row"):
            yield FileTree(empty="no difference", waiting="asking the server", id="tree")
            with Vertical(id="changes"):
                yield Line(id="file")
                yield Diff(id="diff", heads=False)
                drawing = Picture(id="picture")
                drawing.display = drawing.can_focus = False
                yield drawing

    def content(self) -> ComposeResult:
        yield from self.files_and_changes()

    def on_mount(self) -> None:
        super().on_mount()
        self.place()
        if not self.beside or self._path:  # else the files have it already
            self.set_focus(self.diff)
        self._opened_at = time.monotonic()

    def on_resize(self) -> None:
        self.place()

    def on_unmount(self) -> None:
        self._changes = Changes()  # a closed screen is freed when cycles are collected

    def show_changes(self, compare: Compare) -> None:
        """Show these changed files in the tree. The file whose changes were on the screen stays there. If
        there was none, the changes of the first file that is not marked as seen and has lines to read are
        shown."""
        current = self._find_shown()
        path = self._path or (current.path if current is not None else "")
        first = not len(self._changes)
        self._changes, self._path = Changes(compare.files), ""
        self.prepare_changes(compare)
        self._paint_tree()
        place = self._changes.place_of.get(path)
        if place is None:
            place = self._find_first()
        if len(self._changes):
            self.show_file(place or 0)
        else:
            self.diff.show_files(())
            self.show_bytes(None)
        if first and len(self._changes) == 1 and self.svc.key_at < self._opened_at:
            self.set_focus(self.diff)
        self.show_frame()

    def prepare_changes(self, compare: Compare) -> None:
        """Called with new changes before they are painted. Does nothing in this class. Subclasses may
        override it."""

    def _paint_tree(self) -> None:
        self.listing.show(TreeRows(self._changes, self._folded, self.seen_paths, self.open_threads()))
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
        """Whether the tree of files is shown beside the changes."""
        return self.app.size.width >= TWO_PANES and not self._hides and not self._crowded

    def pane_to_write_over(self) -> Region | None:
        return self.diff.region if self.beside and self.diff.region else None

    @property
    def _crowded(self) -> bool:
        """Whether old and new are side by side and need the room of the tree."""
        return self.diff.split and self.app.size.width - self._tree_width - FRAME < BESIDE

    @property
    def _tree_width(self) -> int:
        """The columns of the tree beside the changes."""
        width = max(LEAST, self.app.size.width * self.svc.shares.get("files", SHARE) // 100)
        return min(width, self.app.size.width if "files" in self.svc.shares else MOST)

    def place(self) -> None:
        """Show the panes that fit: the tree and the changes in frames, or only one of them."""
        if not self.query("#tree"):
            return
        tree, changes, beside = self.listing, self.query_one("#changes"), self.beside
        wide = self.app.size.width >= TWO_PANES
        self._covers = self._covers and not beside
        tree.display, changes.display = beside or self._covers, beside or not self._covers
        tree.styles.width = self._tree_width if beside else "1fr"
        self.query_one("#file").display = not wide
        for lines in (tree, self.diff):
            if wide:
                draw_frame(lines, "accent" if lines.has_focus else "line")
            else:
                lines.styles.border = None
        self.diff.edges = (1, 1) if wide else (1, 0)
        self._say_where()

    def on_descendant_focus(self) -> None:
        self.place()
        self.listing.refresh()
        file = self._find_shown()
        if self.diff.has_focus and file is not None and file != self.diff.files[0]:
            self.diff.show_files([file])  # all of it

    def _find_shown(self) -> ChangedFile | None:
        """Returns the file whose changes are on the screen, None if there is none."""
        place = self._changes.place_of.get(self.diff.files[0].path) if self.diff.files else None
        return self._changes.file(place) if place is not None else None

    def _position(self) -> str:
        current = self._find_shown()
        files, seen = len(self._changes), len(self.seen_paths)
        place = self._changes.place_of.get(current.path, 0) + 1 if current is not None else 0
        return f"{place} of {count(files, 'file')}, {seen} seen" if files else ""

    def place_words(self) -> str:
        """Returns which hunk the cursor is in, and how many hunks the file has."""
        hunk, hunks = self.diff.hunk_position
        return f"hunk {hunk} of {hunks}" if hunks else ""

    def _say_where(self) -> None:
        """Write the name of the file and the position of the cursor into the frames. If there are no frames,
        write them into the line above the changes."""
        if not self.query("#diff"):
            return
        current, diff, tree = self._find_shown(), self.diff, self.listing
        position = self._position()
        tree.name_frame("Files", position)
        if current is None:
            diff.name_frame("", "")
            return
        seen: Part = ("  ✓ seen" if current.path in self.seen_paths else "", "good")
        moved = current.old_path if current.old_path != current.path else None
        was = f"{safe(moved)} → " if moved else ""
        name: Part = (f" {was}{safe(current.path)}  ", "title")
        counts = counts_of(current)
        words = f"{sign_of(current)[0]}{name[0]}{''.join(text for text, _ in counts)}{seen[0]}"
        where = self.place_words()
        diff.name_frame(words, where)
        if self.lines is diff and not where.startswith("hunk"):
            position = where or position
        rule: Part = ("── ", "line")
        self.query_one("#file", Line).put(
            (rule, sign_of(current), name, *counts, seen), ((position, "dim"), (" ──", "line"))
        )

    def on_lines_moved(self, event: Lines.Moved) -> None:
        """Called when the cursor of a list has moved. Once the cursor of the tree rests on a file, the
        changes of that file are shown."""
        if event.lines is self.listing:
            if self._rests is not None:
                self._rests.stop()
            self._rests = self.set_timer(REST, self._show_rested) if self.beside else None
        self._say_where()

    def _show_rested(self) -> None:
        key = self.listing.key
        if self.in_front and isinstance(key, TreeKey) and key.kind == "file":
            place = self._changes.place_of.get(key.path)
            current = self._find_shown()
            if place is not None and (current is None or current.path != key.path):
                self.show_file(place, follow=False)

    def show_file(self, place: int, *, end: bool = False, follow: bool = True) -> None:
        """Show the changes of one file. `place`: its place in the order of the tree. `end`: the cursor begins
        on the last row. `follow`: the cursor of the tree moves to the file as well."""
        file, diff, before = self._changes.file(place), self.diff, self._find_shown()
        diff.empty = _without_lines(file, self.whole_diff())
        if diff.selects:
            diff.select()
        if follow:
            self._unfold(file.path)
            self.listing.go_to(TreeKey("file", file.path))
        diff.show_files(glimpse_of([file]) if self.listing.has_focus else [file])
        self.show_bytes(file)
        self.paint_notes()
        if before is None or before.path != file.path:
            diff.top = diff.shift = 0
            diff.go(len(diff.rows) - 1 if end else 0, -1 if end else 1)
        self._say_where()
        self.colour(file, self.repo.id, self.new_seal)

    def _unfold(self, path: str) -> None:
        folders = {folder for folder in self._folded if path.startswith(f"{folder}/")}
        if folders:
            self._folded -= folders
            self._paint_tree()

    # --- files

    def do_tree(self) -> None:
        """Move the focus to the tree of files. If the tree has it already, move it back to the changes."""
        if self.beside:
            self.set_focus(self.diff if self.listing.has_focus else self.listing)
            return
        if self.app.size.width >= TWO_PANES and not self._crowded:
            self._hides = False
        else:
            self._covers = not self._covers
        self._show_pane(self.listing if self.beside or self._covers else self.diff)

    def show_diff(self) -> None:
        """Move the focus to the changes, and show all lines of the file in them."""
        file = self._find_shown()
        if not self.diff.has_focus:
            self._covers = False
            self._show_pane(self.diff)
            if file is not None and file != self.diff.files[0]:
                self.diff.show_files([file])

    def _show_pane(self, lines: Lines) -> None:
        self.place()
        self.set_focus(lines)

    def do_pane(self) -> None:
        if self.beside:
            super().do_pane()
        else:
            self.do_tree()

    def do_split(self) -> None:
        """Show old and new side by side, or in one column again. The tree makes room for both sides."""
        width, diff, before = self.app.size.width, self.diff, self.beside
        if not diff.split and width < BESIDE + sum(diff.edges):
            self.tell(f"side by side needs {BESIDE + sum(diff.edges)} columns, and the terminal has {width}")
            return
        diff.split, self._covers = not diff.split, False
        if before and not self.beside:
            self._show_pane(diff)  # its new width makes the rows
            self.tell("f shows the files, which made room")
            return
        self.place()
        diff.rebuild()

    def do_hide_tree(self) -> None:
        if self.app.size.width < TWO_PANES:
            self.tell(f"the files stand beside the changes from {TWO_PANES} columns; f shows them")
            return
        if self._crowded:
            self.tell("old and new take the room of the files; f shows them, v puts them in one column")
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
        if isinstance(key, TreeKey) and key.kind == "folder":
            self._fold(key.path)
        elif isinstance(key, TreeKey):
            self.show_file(self._changes.place_of[key.path], follow=False)
            self._covers = False
            self._show_pane(self.diff)

    def _fold(self, path: str) -> None:
        self._folded.symmetric_difference_update({path})
        self._paint_tree()

    def do_left(self) -> None:
        """In the tree, fold the folder under the cursor, or move to the parent folder. In the changes, scroll
        left."""
        key = self.listing.key
        if not self.listing.has_focus or not isinstance(key, TreeKey):
            super().do_left()
        elif key.kind == "folder" and key.path not in self._folded:
            self._fold(key.path)
        else:
            around = [entry.path for entry in self._changes.entries if entry.file < 0]
            inside = [path for path in around if key.path.startswith(f"{path}/")]
            if inside:
                self.listing.go_to(TreeKey("folder", inside[-1]))

    def do_right(self) -> None:
        key = self.listing.key
        if not self.listing.has_focus or not isinstance(key, TreeKey):
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
        """Show the next file, or with `by` −1 the previous one. Returns False if there is none."""
        current = self._find_shown()
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
        """Returns the place of the next file after `place` that is not marked as seen. The search continues
        at the first file after the last one. Returns None if all files are marked."""
        files = len(self._changes)
        around = ((place + step) % files for step in range(1, files + 1))
        return next((at for at in around if not self._is_seen(at)), None)

    def _find_first(self) -> int | None:
        """Returns the place of the file that is shown first: the first one that is not marked as seen and has
        lines to read, not bytes. If there is none, returns the place of the first one that is not marked."""
        unseen = [place for place in range(len(self._changes)) if not self._is_seen(place)]
        texts = (place for place in unseen if self._changes.file(place).patch)
        return next(texts, unseen[0] if unseen else None)

    def _is_seen(self, place: int) -> bool:
        return self._changes.file(place).path in self.seen_paths

    def do_seen(self) -> None:
        """Mark the file on the screen as seen or, if it is marked already, as not seen. If the cursor of the
        tree is on a folder, that is done for all its files. After marking as seen, show the next file that is
        not seen."""
        current, key = self._find_shown(), self.listing.key
        if current is None:
            return
        files = [current]
        if self.listing.has_focus and isinstance(key, TreeKey):
            files = self._below(key)
        seen = not all(file.path in self.seen_paths for file in files)
        self.mark_seen(files, seen)
        self._paint_tree()
        self.show_frame()
        if not seen:
            return
        following = self._next_unseen(self._changes.place_of[files[-1].path])
        if following is None:
            self.tell(self.ALL_SEEN)
        else:
            self.show_file(following)

    def _below(self, key: TreeKey) -> list[ChangedFile]:
        """Returns the file of this row of the tree. For a folder, returns all files below it."""
        is_folder = key.kind == "folder"
        entries = self._changes.entries
        row = next(entry for entry in entries if entry.path == key.path and (entry.file < 0) == is_folder)
        return [self._changes.file(place) for place in range(row.first, row.last)]

    def do_half_down(self) -> None:
        """Scroll half a page down. If the cursor is at the end of a file, show the next file."""
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
        """Go to the next match of the search, or with `step` −1 to the previous one. The search continues in
        the other files."""
        words = self.diff.sought
        if self.lines is self.listing or not words:
            super()._search(step)
            return
        current, cursor = self._find_shown(), self.diff.cursor
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
            self.say("nothing matches; / takes what to look for", "warn")

    def do_back(self) -> None:
        if self.diff.selects:
            self.diff.select()
        elif self._covers:
            self.do_tree()
        else:
            super().do_back()

    def tell(self, text: str) -> None:
        self.say(text, "dim")


def _without_lines(file: ChangedFile, command: str) -> str:
    """Returns the note that is shown for a file whose changes have no lines to show. `command`: the command
    line that prints changes that are too large for the screen."""
    if file.binary:
        return "a binary file"
    if file.patch is None:
        return f"too large to be shown here: {command}"
    return "its text is the same" if file.status == "renamed" else "no lines differ"
