"""A column of facts about the file or folder that the tab Code shows, on a very wide screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from localstore.core.model.history import SealSummary
from localstore.core.words import count
from svc.console.table import size
from tui import contents
from tui.contents import Below
from tui.screens.base import FACTS_BESIDE
from tui.screens.code.file_view import FileView
from tui.screens.code.seal_rows import subject_of
from tui.screens.facts import FRAME, Facts, fact_rows, frame, wrap_facts
from tui.text import Part, ago, brief, fit, safe
from tui.widgets.lines import Item, sequence
from tui.wording import unread_words

WIDTH = 46  # columns, with the frame
LISTED = 12  # seals of the history
ENDING, KINDS = 12, 8  # columns of the ending of files' names; kinds of files that are listed


class FileFacts(FileView):
    """Shows facts about a file or folder in the column `facts`: what a folder contains, who changed it last,
    who has changed it before, and its history."""

    _of_file: tuple[str, str, bool] = ("", "", False)  # seal and path of what the facts are about; a folder
    _glimpsed_path: tuple[str, bool] | None = None  # what the pane of the file shows; whether it is a folder
    _seals_of: Sequence[SealSummary] | None = None  # None until they are read
    _below: Below | None = None  # what the folder contains, None until it is read
    _unread = ""  # says that the facts cannot be read

    def place_facts(self) -> None:
        """Show the column of facts if there is room and something to show facts about. If another file or
        folder is shown now, request the facts about it."""
        facts = self.query_one("#facts", Facts)
        wide = self.app.size.width >= FACTS_BESIDE and self._mode == "file" and not self.replaying
        path, is_folder = (
            (self.path, False) if self.path is not None else self._glimpsed_path or (None, False)
        )
        has_room = wide and self.of.seal is not None and not self.query_one("#people").display
        facts.display = has_room and path is not None
        about = (self.of.seal or "", path or "", is_folder)
        if not facts.display or (about == self._of_file and not self._unread):
            return
        self._of_file = about
        self._seals_of, self._below, self._unread = None, None, ""
        facts.styles.width = WIDTH
        frame(facts, "facts", bright=False)
        self._paint_facts()
        seal, path, _ = about
        ref = self.of.ref_name if seal == self.of.head else seal  # as the key for the history asks

        def paint(seals: list[SealSummary], at: float) -> None:
            if self._of_file == about:
                self._seals_of = seals
                self._paint_facts()

        def take(below: Below, at: float) -> None:
            if self._of_file == about:
                self._below = below
                self._paint_facts()

        def miss(error: BaseException) -> None:
            if self._of_file == about:
                self._unread = unread_words(self.svc.news.state)
                self._paint_facts()

        if is_folder:
            self.svc.load(contents.below(self.of.repo.id, seal, path), take, miss)
        self.svc.load(contents.history(self.of.repo.id, ref, path or None), paint, miss)

    def show_facts_of(self, path: str, *, is_folder: bool) -> None:
        """Show the facts about a file or folder that is previewed although it is not open."""
        self._glimpsed_path = path, is_folder
        self.place_facts()

    def _paint_facts(self) -> None:
        if not self.is_attached:
            return
        rows = [*self._rows_of_folder(), *self._rows_of_seals()]
        if not rows:
            rows = [Item(None, ((self._unread or "◐ asking the server", "dim"),))]
        self.query_one("#facts", Facts).show(sequence(wrap_facts(rows, WIDTH - FRAME)))

    def _rows_of_folder(self) -> list[Item]:
        """Returns rows with the number of files below a folder, their size, and their kinds."""
        below = self._below
        if below is None:
            return []
        files = count(below.files, "file")
        hidden: Part = ("; others are hidden from you" if below.filtered else "", "dim")
        kinds: list[list[Part]] = [
            [
                (f"{safe(kind.name)[:ENDING]:<{ENDING}}", "accent"),
                (f"{kind.files:>6} file{' ' if kind.files == 1 else 's'}", "text"),
                (f"  {size(kind.size):>9}", "dim"),
            ]
            for kind in below.kinds[:KINDS]
        ]
        if len(below.kinds) > KINDS:
            kinds.append([(f"{len(below.kinds) - KINDS} more kinds", "dim")])
        return [
            *fact_rows("below it", [(files, "text"), (f"  {size(below.size)}", "text"), hidden]),
            *fact_rows("kinds", *kinds),
        ]

    def _rows_of_seals(self) -> list[Item]:
        """Returns rows with the newest seal of a file or folder, the size of a file, who changed it, and its
        history."""
        seals = self._seals_of
        if seals is None:
            return []
        if not seals:
            return fact_rows("last seal", [("none: it is not sealed yet", "dim")])
        now, newest, width = self.svc.clock(), seals[0], WIDTH - FRAME
        blob_size = self.size_of(self._of_file[1])
        makers = Counter(seal.provenance.who.handle or "?" for seal in seals)
        people: list[list[Part]] = [
            [(f"@{safe(handle)}", "person"), (f"  {count(seals_made, 'seal')}", "dim")]
            for handle, seals_made in makers.most_common(LISTED)
        ]
        history: list[list[Part]] = []
        for seal in seals[:LISTED]:
            age = f" {brief(seal.created_at, now):>4}"
            words = ((f"{seal.id[:8]} ", "accent"), subject_of(seal))
            cut = fit(words, width - len(age))
            blank = " " * (width - len(age) - sum(len(text) for text, _ in cut))
            history.append([*cut, (f"{blank}{age}", "dim")])
        if len(seals) > LISTED:
            history.append([(f"{len(seals) - LISTED} more{'' if self._of_file[2] else ': h'}", "dim")])
        return [
            *fact_rows(
                "last seal",
                [subject_of(newest)],
                [
                    (f"@{safe(newest.provenance.who.handle or '?')} ", "person"),
                    (f"{ago(newest.created_at, now)}  ", "dim"),
                    (newest.id[:8], "accent"),
                ],
            ),
            *fact_rows("size", [(size(blob_size), "text")] if blob_size is not None else []),
            *fact_rows("changed by", *people),
            *fact_rows(f"history · {len(seals)}", *history),
        ]

    def size_of(self, path: str) -> int | None:
        """The size of a sealed file in bytes, as the tree shows it. None if it is not known."""
        raise NotImplementedError
