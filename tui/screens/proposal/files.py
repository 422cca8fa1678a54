"""The changes of a proposal: files and lines against its base."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.app import ComposeResult

from localstore.core.endpoint import Endpoint
from localstore.core.model.collaboration import thread as threads
from localstore.core.model.collaboration.proposal import Proposal
from localstore.core.model.collaboration.thread import State, Thread, ThreadComment, ThreadCreate, ThreadPatch
from localstore.core.model.history import Compare
from localstore.core.model.repo import Repo
from localstore.core.paths import terminal_safe
from tui import contents
from tui.actions import Action
from tui.drafts import named
from tui.screens.code.differing import DIFF_ACTIONS, Differing
from tui.screens.proposal.review import VERDICTS, Reviewing, waiting
from tui.screens.talk.talk import edit_comment
from tui.text import Part, ago, safe
from tui.texts import Texts
from tui.widgets.diff import Diff, Span
from tui.widgets.lines import Item
from tui.widgets.patch import Key, Spot

if TYPE_CHECKING:
    from tui.markdown.words import Row


class Note(NamedTuple):
    """The key of a list row that shows a thread below the lines that it is about."""

    thread: str
    row: int
    comment: str = ""  # the id of the comment that the row is of


def _action(id: str, key: str, label: str, command: str, right: str) -> Action:
    return Action(id, (key,), label, f"svc pr {command}", "signed_in", True, right)


_ON = "comment {n} --path FILE --line A"
_ACTIONS = (
    _action("comment", "c", "comment on the line", f"{_ON} -b TEXT", "thread.create"),
    _action(
        "suggest",
        "x",
        "suggest other lines",
        f"{_ON} --suggest TEXT",
        "thread.create",
    ),
    _action("pending", "p", "keep for the verdict", f"{_ON} --draft -b TEXT", "thread.create"),
    _action("edit_comment", "e", "edit the comment", "comment {n} --edit-last -b TEXT", ""),
    _action("resolve", "z", "resolve or reopen", "resolve {n} ID", "thread.resolve"),
    _action("apply", "a", "apply suggestion", "apply {n} ID", "suggestion.prepare"),
)


_SELECTING = (
    Action("select", ("V",), "select lines"),
    Action("select_down", ("shift+down",), "select the next line too"),
    Action("select_up", ("shift+up",), "select the line before too"),
)


class Files(Differing, Reviewing):
    ACTIONS: tuple[Action, ...] = (*DIFF_ACTIONS, *_SELECTING, *_ACTIONS, *VERDICTS)

    def __init__(self, repo: Repo, proposal: Proposal, path: str = "") -> None:
        super().__init__()
        self.repo, self._one, self._path = repo, proposal, path
        self._count = 0
        self._threads: list[Thread] = []
        self._texts = Texts(self, self._paint_notes)
        self._keeps = False  # whether comments wait for the verdict

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, self._one.author.handle == self.svc.client.account

    def facts(self) -> dict[str, str]:
        return {"pr": str(self._one.number), "seal": self._one.head_seal}

    def content(self) -> ComposeResult:
        yield Diff(id="diff")

    def title_parts(self) -> Sequence[Part]:
        files = f"{self._count} file{'' if self._count == 1 else 's'}  "
        count = self.pending()
        pending = f"{count} pending  " if count else "comments wait for A, X or S  " if self._keeps else ""
        named = f" {safe(self.repo.full_name)} #{self._one.number} files"
        return ((named, "title"), (f"  {files}", "dim"), (pending, "warn"), (safe(self._one.title), "text"))

    def on_mount(self) -> None:
        super().on_mount()
        self.do_refresh()

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
            self._load_changes()
            if proposal.head_seal != before.head_seal:
                self.tell("somebody pushed: this is the newest version")
        self.show_frame()

    def _paint(self, compare: Compare, at: float) -> None:
        self._count = len(compare.files)
        self.diff.show_files(compare.files)
        if self._path:
            self.diff.go_to(Key(self._path, "file", 0, 0))
            self._path = ""
        self.show_frame()

    def _paint_threads(self, threads: list[Thread], at: float) -> None:
        before, self._threads = self.pending(), threads
        self._keeps = self.pending() > 0 or (self._keeps and not before)  # a review ends the keeping
        self.show_frame()
        self._paint_notes()

    def _paint_notes(self) -> None:
        width = max(20, self.size.width - 16)
        self.diff.show_notes(notes(self._threads, partial(self._texts.rows, width=width), self.svc.clock()))

    def reviewed(self) -> Proposal | None:
        return self._one

    def pending(self) -> int:
        return waiting(self._threads)

    @property
    def diff(self) -> Diff:
        return self.query_one("#diff", Diff)

    def tell(self, text: str) -> None:
        self.say(text, "dim")

    # --- comments on lines

    def do_select(self) -> None:
        self.tell("move to the last line, then c or x" if self.diff.select() else "no lines are selected")

    def do_select_down(self) -> None:
        self._select_by(1)

    def do_select_up(self) -> None:
        self._select_by(-1)

    def _select_by(self, by: int) -> None:
        if not self.diff.selects:
            self.diff.select()
        self.diff.move(by)

    def do_back(self) -> None:
        if self.diff.selects:
            self.diff.select()
        else:
            super().do_back()

    def do_pending(self) -> None:
        self._keeps = not self._keeps
        self.tell(
            "comments go out with your verdict: A, X or S" if self._keeps else "comments go out at once"
        )
        self.show_frame()

    def do_comment(self) -> None:
        if isinstance(self.diff.key, Note) and not self.diff.selects:
            thread = self.diff.key.thread
            draft = named(self.repo.id, self._one.number, thread)
            self.write("answer", lambda text: self._answer(thread, text), draft)
        elif (span := self._span()) is not None:
            seal = self._one.head_seal
            draft = named(self.repo.id, self._one.number, *span[:4])
            self.write(f"comment on {_lines(span)}", lambda text: self._begin(span, seal, text, None), draft)

    def do_edit_comment(self) -> None:
        """Change the text of the comment under the cursor."""
        key = self.diff.key
        comment_id = key.comment if isinstance(key, Note) else ""
        talked = (comment for thread in self._threads for comment in thread.comments)
        comment = next((comment for comment in talked if comment.id == comment_id), None)
        if comment is None:
            self.say("put the cursor on a comment", "warn")
        else:
            edit_comment(self, self.repo, self._one.number, comment)

    def do_suggest(self) -> None:
        span = self._span()
        if span is None:
            return
        if span.side == "old":
            self.say("only lines as they are after the change can be suggested otherwise", "warn")
            return
        if any(line != terminal_safe(line, keep="\t\u200d\u200c") for line in span.text.split("\n")):
            self.say("these lines have characters that cannot be typed here", "warn")
            return
        draft = named(self.repo.id, self._one.number, "suggest", *span[:4])
        seal = self._one.head_seal
        words = "I suggest another line" if span.start == span.end else "I suggest other lines"
        self.write(
            f"in the place of {_lines(span)}",
            lambda text: self._begin(span, seal, words, text),
            draft,
            span.text,
        )

    def _thread(self) -> Thread | None:
        key = self.diff.key
        thread = next((it for it in self._threads if isinstance(key, Note) and it.id == key.thread), None)
        if thread is None:
            self.say("go to a comment first", "warn")
        return thread

    def do_apply(self) -> None:
        """Apply the suggestion: seal the suggested lines onto the branch of the proposal."""
        thread = self._thread()
        if thread is None:
            return
        if thread.suggestion is None or thread.suggestion.applied_seal:
            self.say(
                "it suggests no lines" if thread.suggestion is None else "these lines are applied", "warn"
            )
            return
        words = ["pr", "apply", str(self._one.number), thread.id, "-R", self.repo.full_name]
        self.confirm("seal the suggested lines onto the branch?", lambda: self.svc.run_words(words))

    def do_resolve(self) -> None:
        thread = self._thread()
        if thread is None:
            return
        state: State = "resolved" if thread.state == "open" else "open"
        self._send(threads.UPDATE, ThreadPatch(state=state), thread=thread.id)

    def _span(self) -> Span | None:
        span = self.diff.span()
        if isinstance(span, str):
            self.say(span, "warn")
            return None
        return span

    def _begin(self, span: Span, seal: str, text: str, suggestion: str | None) -> None:
        if self.diff.selects:
            self.diff.select()
        body = ThreadCreate(
            path=span.path,
            start=span.start,
            end=span.end,
            side=span.side,
            seal_id=seal,
            body=text.strip(),
            suggestion=suggestion,
            draft=self._keeps,
        )
        self._send(threads.CREATE, body)

    def _answer(self, thread: str, text: str) -> None:
        if text.strip():
            body = ThreadComment(body=text.strip(), draft=self._keeps)
            self._send(threads.COMMENT, body, thread=thread)

    def _send(self, endpoint: Endpoint[Any], body: Any, **path: str) -> None:
        n = str(self._one.number)
        self.svc.act(endpoint, body, about=self.repo.full_name, id=self.repo.id, n=n, **path)


def _lines(span: Span) -> str:
    return f"line {span.start}" if span.start == span.end else f"lines {span.start} to {span.end}"


def notes(
    threads_of_proposal: Sequence[Thread], rows_of: Callable[[str], Sequence[Row]], now: float
) -> dict[Spot, list[Item]]:
    """Rows of threads, by the last line that they are about. `rows_of`: returns the rows of a text."""
    items_by_spot: dict[Spot, list[Item]] = {}
    for thread in threads_of_proposal:
        at = thread.place
        if at is None:
            continue
        state: str = "waits for your review" if thread.draft else thread.state
        state += "" if at.how == "same" else f", {at.how}"
        rows: list[tuple[str, tuple[Part, ...]]] = [("", ((f"{'':>12}┌ {state}", "accent"),))]
        if thread.suggestion is not None:
            for line in thread.suggestion.text.split("\n"):
                rows.append(("", ((f"{'':>12}│ ", "accent"), (f"+ {safe(line)}", "add"))))
        for comment in thread.comments if thread.state == "open" else ():
            who = f"@{safe(comment.author.handle or '?')} "
            when = ago(comment.created_at, now) + (" · waits" if comment.draft and not thread.draft else "")
            rows.append((comment.id, ((f"{'':>12}│ ", "accent"), (who, "person"), (when, "dim"))))
            rows += [(comment.id, ((f"{'':>12}│ ", "accent"), *row.parts)) for row in rows_of(comment.body)]
        items = [Item(Note(thread.id, place, of), parts) for place, (of, parts) in enumerate(rows)]
        items_by_spot.setdefault(Spot(at.path, thread.side, at.end), []).extend(items)
    return items_by_spot
