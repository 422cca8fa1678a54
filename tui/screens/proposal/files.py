"""The screen with the changes of a proposal: its files, and the lines that differ from its base."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from localstore.core.model.history import ChangedFile, Compare
from localstore.core.model.proposal import Proposal
from localstore.core.model.repo import Repo
from localstore.core.model.thread import Thread
from localstore.core.words import count
from tui import contents
from tui.actions import Action
from tui.screens.base import TWO_PANES
from tui.screens.code.changed_files import CHANGES, ChangedFiles
from tui.screens.proposal.notes import Note, notes
from tui.screens.proposal.remarks import REMARKED, REMARKS, Remarking
from tui.screens.proposal.review import VERDICTS, Reviewing
from tui.screens.proposal.seen import SeenFiles
from tui.text import Part, safe
from tui.texts import Texts
from tui.widgets.diff import Span
from tui.widgets.lines import Lines
from tui.widgets.patch import NotedRows

THREADS = (
    Action("next_thread", ("right_square_bracket",), "next thread", footer=True),
    Action("previous_thread", ("left_square_bracket",), "previous thread"),
)


def _spell_lines(span: Span) -> str:
    """Returns lines as the option `--line` takes them."""
    return str(span.start) if span.start == span.end else f"{span.start}-{span.end}"


class Files(ChangedFiles, Remarking):
    """The screen with the changed files of a proposal, and with the threads about lines of these files."""

    ALL_SEEN = "all files are seen: A approves, X requests changes"
    ACTIONS: tuple[Action, ...] = (
        *CHANGES,
        *THREADS,
        *REMARKS,
        *VERDICTS,
        Action("machine", (), "this machine: models, apps", "svc llm status"),
        Action("merge", ("M",), "merge", "svc pr merge {n}", "signed_in", right="proposal.merge_prepare"),
    )

    def __init__(self, repo: Repo, proposal: Proposal, path: str = "") -> None:
        super().__init__(repo, path)
        self._one = proposal
        self._texts = Texts(self, self.paint_notes)
        self._seen: SeenFiles | None = None
        self._unfolded: set[str] = set()  # ids of resolved threads that are shown as cards

    @property
    def new_seal(self) -> str:
        return self._one.head_seal

    @property
    def old_seal(self) -> str:
        return self._one.merge_base or self._one.base_seal

    @property
    def seen_paths(self) -> Collection[str]:
        return self._seen.paths if self._seen is not None else ()

    def mark_seen(self, files: Sequence[ChangedFile], seen: bool) -> None:
        if self._seen is not None:
            self._seen.mark(files, self._one.head_seal, seen=seen)
            self.svc.run_worker(self._seen.keep, thread=True, group="seen", exit_on_error=False)

    def label_of(self, action: Action) -> str:
        """Returns the label of an action in the line of keys. Actions about a line or a comment have one only
        where they can do something."""
        if action.id == "open" and self.diff.has_focus:
            thread = self.thread_here()
            is_folded = thread is not None and thread.id not in self._unfolded
            is_resolved = thread is not None and thread.state == "resolved"
            return ("unfold" if is_folded else "fold") if is_resolved else ""
        label = super().label_of(action)
        if action.id in ("next_thread", "previous_thread"):
            has_room = self.app.size.width >= TWO_PANES or isinstance(self.diff.key, Note)
            return label if self._threads and has_room else ""
        return self.remark_label(action.id, label) if label and action.id in REMARKED else label

    def whole_diff(self) -> str:
        return f"svc pr diff {self._one.number}"

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, self._one.author.handle == self.svc.client.account

    def facts(self) -> dict[str, str]:
        thread, span = self.thread_here(), self.diff.span()
        line = (
            {}
            if isinstance(span, str)
            else {"path": span.path, "line": _spell_lines(span), "side": span.side}
        )
        named = {"thread": thread.id} if thread is not None else {}
        return {"pr": str(self._one.number), "seal": self._one.head_seal, **line, **named}

    def command_of(self, action: Action) -> str:
        thread = self.thread_here()
        if action.id == "resolve" and thread is not None and thread.state != "open":
            return f"{action.command} --reopen"
        if action.id == "comment" and thread is not None:
            return "svc pr comment {n} --thread {thread} -b TEXT"
        return super().command_of(action)

    def title_parts(self) -> Sequence[Part]:
        files, seen = len(self._changes), len(self.seen_paths)
        open_threads = sum(self.open_threads().values())
        words = f"{seen}/{files} seen  " if files else ""
        talk = f"{count(open_threads, 'open thread')}  " if open_threads else ""
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
        self._seen = SeenFiles(self.svc.client, self.repo.id, self._one.number)
        self.do_refresh()

    def do_merge(self) -> None:
        """Go back to the screen of the proposal, and open its merge card."""
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
            self.forget_colours()
            self._load_changes()
            if proposal.head_seal != before.head_seal:
                self.tell_of_push()
        self.show_frame()

    def _paint(self, compare: Compare, at: float) -> None:
        self.show_changes(compare)

    def prepare_changes(self, compare: Compare) -> None:
        if self._seen is not None:
            self._seen.compare(compare.files, self._one.head_seal)

    def _paint_threads(self, threads: list[Thread], at: float) -> None:
        before, self._threads = self.pending(), threads
        self._keeps = self.pending() > 0 or (self._keeps and not before)  # a review ends the keeping
        self.show_frame()
        self.paint_notes()
        self._paint_tree()

    def paint_notes(self) -> None:
        if self._threads is None:
            return
        current = self._find_shown()
        listed = [
            thread
            for thread in self._threads
            if current is not None and thread.place is not None and thread.place.path == current.path
        ]
        before = self.diff.key
        self.diff.show_notes(
            lambda rooms: notes(listed, self._texts.rows, self.svc.clock(), rooms, self._unfolded)
        )
        if isinstance(before, Note) and self.diff.key != before:
            self._go_to_thread(before.thread)  # its row may be gone, because the thread was folded

    def _go_to_thread(self, thread_id: str) -> bool:
        """Move the cursor to the first row of a thread. Returns False if the file on the screen does not have
        it."""
        place = next((place for place, of in self._list_places() if of == thread_id), None)
        if place is not None:
            self.diff.go(place)
        return place is not None

    def _list_places(self) -> list[tuple[int, str]]:
        """Returns (row, id of the thread) of each thread in the file on the screen, from the top."""
        rows = self.diff.rows
        noted = rows.noted if isinstance(rows, NotedRows) else []
        begins: dict[str, int] = {}
        for place in noted:
            key = rows[place].key
            if isinstance(key, Note):
                begins.setdefault(key.thread, place)
        return [(place, thread) for thread, place in begins.items()]

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if not isinstance(event.key, Note):
            super().on_lines_chosen(event)
            return
        thread = self.thread_here()
        if thread is not None and thread.state == "resolved":
            self._unfolded.symmetric_difference_update({thread.id})
            self.paint_notes()
            self.show_keys()

    def do_next_thread(self) -> None:
        self._step_thread(1)

    def do_previous_thread(self) -> None:
        self._step_thread(-1)

    def _step_thread(self, step: int) -> None:
        """Go to the next thread, or with `step` −1 to the previous one. The other files follow the one on the
        screen, and the first follows the last."""
        if not self._threads:
            self.tell("there are no comments on lines")
            return
        self.set_focus(self.diff)
        key, cursor = self.diff.key, self.diff.cursor
        current = key.thread if isinstance(key, Note) else ""
        ahead = [place for place, thread in self._list_places() if thread != current]
        ahead = [place for place in ahead if (place - cursor) * step > 0]
        if ahead:
            self._show_thread(min(ahead) if step > 0 else max(ahead))
            return
        current_file = self._find_shown()
        begin = self._changes.place_of.get(current_file.path, 0) if current_file is not None else 0
        count = len(self._changes)
        paths = {thread.place.path for thread in self._threads if thread.place is not None}
        for away in range(1, count + 1):
            place = (begin + away * step) % count
            if self._changes.file(place).path not in paths:
                continue
            if away < count:
                self.show_file(place)
            places = [row for row, _ in self._list_places()]
            if places:
                self._show_thread(places[0] if step > 0 else places[-1])
                return
        self.tell("the lines that were commented on are not among the changes")

    def _show_thread(self, place: int) -> None:
        """Put the cursor on the first row of a thread, and scroll until its last row is visible, too."""
        rows, last = self.diff.rows, place
        first = rows[place].key
        thread = first.thread if isinstance(first, Note) else ""
        while last + 1 < len(rows) and isinstance(key := rows[last + 1].key, Note) and key.thread == thread:
            last += 1
        self.diff.go(last, -1)
        self.diff.go(place)

    def open_threads(self) -> Mapping[str, int]:
        """Returns the present number of open threads in each file, by path."""
        return Counter(
            thread.place.path
            for thread in self._threads or ()
            if thread.state == "open" and thread.place is not None
        )
