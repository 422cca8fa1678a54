"""The history of a file in the tab Code. It lists the seals and shows what the seal under the cursor changed.
Keys step to the next older or newer seal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rich.cells import cell_len
from textual.timer import Timer

from localstore.core.model.history import ChangedFile, Compare, SealSummary
from localstore.core.words import count
from tui import contents
from tui.changed import glimpse_of
from tui.screens.code.differing import Differing
from tui.screens.code.file_view import FileView
from tui.screens.code.seal_rows import Row, counts, names_of, seal_rows, subject_of
from tui.screens.split import NARROW, REST
from tui.text import Part, brief, fit, safe
from tui.widgets.diff import Diff
from tui.widgets.framed import Pane, draw_frame
from tui.widgets.lines import Item, Lines, sequence

SHARE = 42  # hundredths of the width that the seals take beside what one of them changed
NAMES = 2  # branches and tags that are named on the row of a seal
COLOURED = 3  # files of a seal that get their colours
AUTHOR, SHORT_AUTHOR = 16, 9  # columns of an author at most, and where there is little room
MESSAGE = 12  # rows of a message that are shown above the changes


class History(Differing, FileView):
    """Shows the history of a file in the tab Code. The list `file` contains its seals, and `seal_pane` shows
    what the seal under the cursor changed."""

    _from_tree = False  # whether the tree had the focus when the history was opened
    _kept = ""  # the file that was open before the history of the branch, "" for none
    _history_of = ""  # the branch or tag whose history was asked for last
    _seals: Sequence[SealSummary] = ()
    _seal = ""  # the one that `seal_pane` shows
    _checked: contents.CheckedSeal | None = None  # the same one
    _changed: Row = ()  # how many files and lines it changed
    _is_cut = False  # whether only the beginning of its changes is shown
    _rests: Timer | None = None  # until the cursor among the seals rests

    @property
    def diff(self) -> Diff:
        return self.query_one("#diff", Diff)

    @property
    def previews_seals(self) -> bool:
        """Whether two panes are shown: the list of seals, and the changes of the seal under its cursor."""
        return self._mode == "history" and self.wide

    @property
    def shows_other_history(self) -> bool:
        """Whether a history is shown that is of another branch or tag than the one of the screen."""
        return self._mode == "history" and self._history_of != self.of.ref_name

    def shows_seal(self, seal: str) -> bool:
        return self.previews_seals and seal == self._seal

    def place_seals(self) -> None:
        """If there is room, show beside the list of seals what the seal under the cursor changed."""
        pane, file = self.query_one("#seal_pane", Pane), self.query_one("#file", Lines)
        pane.display = self.previews_seals
        if not pane.display:
            self.diff.drop_files()
            self._seal = ""
        file.marked = self._mode == "history"
        self.query_one("#file_pane").styles.width = f"{SHARE}%" if self.previews_seals else "1fr"
        if self.wide:
            draw_frame(pane, "accent" if pane.has_focus_within else "line")
        else:
            pane.styles.border = None

    def rest_on_seal(self) -> None:
        """Called when the cursor has moved to a seal. If it stays there for a moment, the changes of the seal
        are shown."""
        if self._rests is not None:
            self._rests.stop()
        self._rests = self.set_timer(REST, self._show_rested) if self.previews_seals else None

    def _show_rested(self) -> None:
        seal = self.query_one("#file", Lines).key
        if not self.previews_seals or not self.of.in_front or not isinstance(seal, str) or seal == self._seal:
            return
        self._seal, self._checked, self._changed = seal, None, ()
        self.forget_colours()
        self._paint_about()

        def paint(compare: Compare, at: float) -> None:
            if self.shows_seal(seal):
                files = self._own_first(compare.files)
                self._changed = counts(compare)
                self._paint_about()
                self._show_compared(files)
                self.diff.go(0, -1)
                self._colour_first(files)

        def paint_seal(checked: contents.CheckedSeal, at: float) -> None:
            if self.shows_seal(seal):
                self._checked = checked
                self._paint_about()

        self.svc.load(contents.changes_made(self.of.repo.id, seal), paint)
        self.svc.load(contents.checked_seal(self.of.repo, seal), paint_seal)

    def _show_compared(self, files: Sequence[ChangedFile]) -> None:
        """Show these changes. While the cursor is in the list of seals, only their beginning is kept."""
        compared = tuple(files) if self.diff.has_focus else glimpse_of(files)
        self._is_cut = any(cut is not file for cut, file in zip(compared, files, strict=True))
        self.diff.show_files(compared)

    def show_all_compared(self) -> None:
        """Show the rest of the changes of the seal, if only their beginning is shown."""
        seal = self._seal

        def paint(compare: Compare, at: float) -> None:
            if self.shows_seal(seal) and self._is_cut:
                self._show_compared(self._own_first(compare.files))

        if self._is_cut:
            self.svc.load(contents.changes_made(self.of.repo.id, seal), paint)

    def _colour_first(self, files: Sequence[ChangedFile]) -> None:
        for file in files[:COLOURED]:
            self.colour(file, self.of.repo.id, self._seal)

    def _paint_about(self) -> None:
        """Paint the rows about the shown seal (message, author, signature), and make their widget high enough
        for them."""
        about, pane = self.query_one("#about", Lines), self.query_one("#seal_pane", Pane)
        seal = next((seal for seal in self._seals if seal.id == self._seal), None)
        if seal is None:
            return
        width = max(20, self.app.size.width - self.app.size.width * SHARE // 100 - 4)
        fault = self._checked.fault if self._checked is not None else None
        names = names_of(self.of.refs)
        rows = seal_rows(seal, self.svc.clock(), names, width, MESSAGE, fault, self._changed)
        about.styles.height = len(rows) + 1
        about.show(sequence([Item(None, row) for row in rows]))
        pane.name_frame(f"seal {seal.id[:8]}", "")

    def _own_first(self, files: Sequence[ChangedFile]) -> list[ChangedFile]:
        """Returns the files of a comparison, with the file whose history is shown at the beginning."""
        return sorted(files, key=lambda file: self.path not in (file.path, file.old_path))

    def do_history(self) -> None:
        self.take_row()
        self._show_history()

    def show_history_of_branch(self) -> None:
        """Show the history of all files, whichever file is open."""
        self.leave_replay()
        self._return_to = self.place_in_file() or self._return_to
        if self.path is not None:
            self._kept, self.path = self.path, None
        self._show_history()

    def _show_history(self) -> None:
        repo, path, ref = self.of.repo, self.path, self.of.ref_name
        self._return_to = self.place_in_file() or self._return_to
        if self._mode != "history":
            self._from_tree = self.query_one("#tree", Lines).has_focus
        self._mode, self._history_of = "history", ref
        file = self.query_one("#file", Lines)
        file.shift = 0
        file.clear_search()
        self._arrange()
        painted = False

        def paint(seals: list[SealSummary], at: float) -> None:
            nonlocal painted
            if self._mode != "history" or (path, ref) != (self.path, self._history_of):
                return
            self._seals = seals
            self._arrange()
            self.query_one("#file", Lines).linked = False
            self._paint_seals(None if painted else self.of.seal)  # the cursor may have moved meanwhile
            if not painted:
                self._focus("file")
            painted = True
            self.rest_on_seal()

        self.svc.load(contents.history(repo.id, ref, path), paint)

    def _paint_seals(self, cursor: str | None = None) -> None:
        """Paint the list of seals."""
        width = self.app.size.width
        narrow = (width * SHARE // 100 if self.wide else width) < NARROW
        names, now = names_of(self.of.refs), self.svc.clock()
        authors = [f"@{safe(seal.provenance.who.handle or '?')}" for seal in self._seals]
        room = min(SHORT_AUTHOR if narrow else AUTHOR, max(map(cell_len, authors), default=0))
        rows = []
        for seal, author in zip(self._seals, authors, strict=True):
            merge: Part = ("⑂ " if seal.merged else "", "dim")
            words = (
                (f"{seal.id[:8]} ", "accent"),
                merge,
                *names.get(seal.id, ())[: 1 if narrow else NAMES],
                subject_of(seal),
            )
            fitting = "".join(text for text, _ in fit(((author, "person"),), room))
            who: Part = (f"{fitting}{' ' * (room - cell_len(fitting))} ", "person")
            rows.append(Item(seal.id, words, (who, (f"{brief(seal.created_at, now):>4} ", "dim"))))
        self.query_one("#file", Lines).show(sequence(rows), cursor)
        of = safe(self.path or self.of.repo.name)
        self._head(f"history of {of} · {safe(self.of.ref_name)}", "")

    def show_seal(self, seal: str) -> None:
        """Open the screen of one seal."""
        from tui.screens.code.seal import SealScreen

        self.app.push_screen(SealScreen(self.of.repo, seal, self.path or "", names_of(self.of.refs)))

    def do_older(self) -> None:
        self._step(1)

    def do_newer(self) -> None:
        self._step(-1)

    def _step(self, by: int) -> None:
        """Show the file at the next older seal, or with `by` −1 at the next newer one. If no file is open,
        step through all seals of the branch."""
        repo, path, ref, current = self.of.repo, self.path, self.of.ref_name, self.of.seal
        if current is None:
            return
        stepped: list[bool] = []

        def of_branch(seals: list[SealSummary], at: float) -> None:
            """Find the shown text among the seals that changed the file, and step from its seal. `seals`: the
            seals that changed the file, the newest first."""
            ids = [seal.id for seal in seals]
            if current in ids:
                step(ids, ids.index(current))
            elif current == self.of.head:
                step(ids, 0)
            else:  # between two that changed the file
                line = contents.history(repo.id, current, path, first_parent=True)
                self.svc.load(line, partial(of_seal, ids))

        def of_seal(ids: list[str], seals: list[SealSummary], at: float) -> None:
            nearest = next((seal.id for seal in seals if seal.id in ids), None)
            step(ids, ids.index(nearest) if nearest is not None else len(ids) - 1)

        def step(ids: list[str], place: int) -> None:
            if stepped or not ids:
                return
            stepped.append(True)
            target = place + by
            if target >= len(ids):
                self.of.say("this is the oldest", "dim")
            elif target > 0:
                self.of.go_to(ref, ids[target])
                self.of.back_words = f"{count(target, 'seal')} back"
                self.of.show_frame()
            elif current == self.of.head:
                self.of.say("this is the newest", "dim")
            else:  # the newest text is that of the branch, and can be edited there
                self.of.go_to(ref, self.of.head or ids[0])

        self.svc.load(contents.history(repo.id, ref, path, first_parent=True), of_branch)
