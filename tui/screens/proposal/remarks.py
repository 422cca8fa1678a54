"""Comments on lines of a proposal: writing, answering, suggesting lines, applying suggestions, and resolving
threads."""

from __future__ import annotations

from typing import Any

from localstore.core.endpoint import Endpoint
from localstore.core.model import thread as threads
from localstore.core.model.issue import Comment
from localstore.core.model.proposal import Proposal
from localstore.core.model.thread import State, Thread, ThreadComment, ThreadCreate, ThreadPatch
from localstore.core.paths import terminal_safe
from localstore.core.words import count
from svc.flows.place.rights import refusal
from tui.actions import Action
from tui.asked import DONE
from tui.drafts import name_draft
from tui.screens.base import TWO_PANES
from tui.screens.proposal.notes import Note
from tui.screens.proposal.review import Reviewing, waiting
from tui.screens.talk.talk import edit_comment
from tui.text import Part
from tui.texts import first_words
from tui.widgets.diff import Diff, Span
from tui.widgets.patch import Key


def _action(id: str, key: str, label: str, command: str, right: str) -> Action:
    return Action(id, (key,), label, f"svc pr {command}", "signed_in", True, right)


_ON = "comment {n} --path {path} --line {line} --side {side}"
_COMMENTS = (
    _action("comment", "c", "comment on the line", f"{_ON} -b TEXT", "thread.create"),
    _action(
        "suggest",
        "x",
        "suggest other lines",
        f"{_ON} --suggest TEXT",
        "thread.create",
    ),
    _action("resolve", "z", "resolve or reopen", "resolve {n} {thread}", "thread.resolve"),
    _action("apply", "a", "apply suggestion", "apply {n} {thread}", "suggestion.prepare"),
    _action("edit_comment", "e", "edit the comment", "comment {n} --edit-last -b TEXT", ""),
    _action("pending", "p", "keep for the verdict", f"{_ON} --draft -b TEXT", "thread.create"),
)


_SELECTING = (
    Action("select", ("V",), "select lines"),
    Action("select_down", ("shift+down",), "select the next line too"),
    Action("select_up", ("shift+up",), "select the line before too"),
)
REMARKS = (*_SELECTING, *_COMMENTS)
# Actions about a line or a comment of the changes; each is about only one of these, but comments are.
REMARKED = frozenset({"comment", "suggest", "edit_comment", "resolve", "apply"})


class Remarking(Reviewing):
    """A screen on which the user can comment on lines of a proposal's changes. `diff`: the comparison that
    shows the changes."""

    _one: Proposal
    _threads: list[Thread] | None = None  # None until they are read
    _applied = ""  # what was said when the user's suggestion was applied, until its seal is shown
    _keeps = False  # whether comments wait for the verdict

    @property
    def diff(self) -> Diff:
        raise NotImplementedError

    def show_diff(self) -> None:
        """Show the changes, and move the focus to them."""
        raise NotImplementedError

    def show_thread(self, thread: Thread) -> None:
        """Scroll so that all of a thread is visible, if there is room for it."""
        raise NotImplementedError

    def tell(self, text: str) -> None:
        self.say(text, "dim")

    def remark_label(self, id: str, label: str) -> str:
        """Returns the label of an action about a line or a comment, for the line of keys. Returns "" if the
        changes do not have the focus, or if the action can do nothing at the cursor."""
        key = self.diff.key
        if not self.diff.has_focus:
            return ""
        if not isinstance(key, Note) or self.diff.selects:
            return self._label_on_lines(id, label)
        thread = next((it for it in self._threads or () if it.id == key.thread), None)
        if id == "apply":
            can = thread is not None and thread.suggestion is not None and not thread.suggestion.applied_seal
            return "apply" if can else ""
        labels = {"comment": "answer", "suggest": "", "edit_comment": "edit" if self._may_edit() else ""}
        labels["resolve"] = "resolve" if thread is None or thread.state == "open" else "reopen"
        return labels[id]

    def _may_edit(self) -> bool:
        """Whether the account may change the comment under the cursor."""
        comment, account = self._comment_here(), self.svc.client.account
        mine = comment is not None and bool(account) and comment.author.handle == account
        return comment is not None and not refusal("comment.edit", self.repo, mine)

    def _comment_here(self) -> Comment | None:
        """Returns the comment of a thread that is under the cursor, None if there is none."""
        key = self.diff.key
        comment_id = key.comment if isinstance(key, Note) else ""
        talked = (comment for thread in self._threads or () for comment in thread.comments)
        return next((comment for comment in talked if comment.id == comment_id), None)

    def _label_on_lines(self, id: str, label: str) -> str:
        """Returns the label of an action on the lines under the cursor or the selected ones. Lines that were
        removed cannot be suggested otherwise. A file of which no line differs has none to comment on."""
        if not self.diff.rows:
            return ""
        span = self.diff.span(with_text=False)
        is_removed = isinstance(span, Span) and span.side == "old"
        if id not in ("comment", "suggest") or (id == "suggest" and is_removed):
            return ""
        if self.diff.selects:
            if isinstance(span, str):  # it says why not
                return ""
            return f"{'comment on' if id == 'comment' else 'suggest other'} {name_lines(span)}"
        return label if self.app.size.width >= TWO_PANES else id

    def tell_of_push(self) -> None:
        """Say why the screen now shows a newer version of the proposal: the user has applied a suggestion, or
        somebody has pushed."""
        if self._applied:
            self.say(self._applied, "good")
            self._applied = ""
        else:
            self.tell("somebody pushed: this is the newest version")

    def get_proposal(self) -> Proposal | None:
        return self._one

    def pending(self) -> int:
        return waiting(self._threads or ())

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

    def do_pending(self) -> None:
        self._keeps = not self._keeps
        self.tell(
            "comments go out with your verdict: A, X or S" if self._keeps else "comments go out at once"
        )
        self.show_frame()

    def do_comment(self) -> None:
        if isinstance(self.diff.key, Note) and not self.diff.selects:
            thread = self.diff.key.thread
            draft = name_draft(self.repo.id, self._one.number, thread)
            self.write("answer in the thread", lambda text: self._answer(thread, text), draft)
        elif (span := self._span()) is not None:
            seal = self._one.head_seal
            draft = name_draft(self.repo.id, self._one.number, *span[:4])
            self.write(
                f"comment on {name_lines(span)}", lambda text: self._begin(span, seal, text, None), draft
            )

    def do_edit_comment(self) -> None:
        """Let the user change the text of the comment under the cursor."""
        comment = self._comment_here()
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
        draft = name_draft(self.repo.id, self._one.number, "suggest", *span[:4])
        seal = self._one.head_seal
        words = "I suggest another line" if span.start == span.end else "I suggest other lines"
        self.write(
            f"in the place of {name_lines(span)}",
            lambda text: self._begin(span, seal, words, text),
            draft,
            span.text,
            replaced=span.text.split("\n"),
        )

    def thread_here(self) -> Thread | None:
        """Returns the thread under the cursor, None if there is none."""
        key = self.diff.key
        return next((it for it in self._threads or () if isinstance(key, Note) and it.id == key.thread), None)

    def _thread(self) -> Thread | None:
        thread = self.thread_here()
        if thread is None:
            self.say("go to a comment first", "warn")
        return thread

    def do_apply(self) -> None:
        """Apply the suggestion under the cursor. It makes a seal with the suggested lines on the branch of
        the proposal."""
        thread = self._thread()
        if thread is None:
            return
        if thread.suggestion is None or thread.suggestion.applied_seal:
            self.say(
                "it suggests no lines" if thread.suggestion is None else "these lines are applied", "warn"
            )
            return
        words = ["pr", "apply", str(self._one.number), thread.id, "-R", self.repo.full_name]

        def show(text: str, state: Part) -> None:
            if self.is_attached:
                words, done = first_words(text) or state[0], state[0] == DONE
                self._applied = words if done else ""
                self.say(words, "good" if done else "bad")
                self.do_refresh()

        def apply() -> None:
            self.say("◐ applying the suggestion …", "warn")
            self.svc.run_beside(words, show)

        self.confirm(_ask_to_apply(self._one, thread), apply, low=True)
        self.show_thread(thread)

    def do_resolve(self) -> None:
        thread = self._thread()
        if thread is None:
            return
        state: State = "resolved" if thread.state == "open" else "open"
        self._send(threads.UPDATE, ThreadPatch(state=state), thread=thread.id)

    def _span(self) -> Span | None:
        span = self.diff.span()
        if isinstance(span, str):
            key = self.diff.key
            is_heading = isinstance(key, Key) and key.kind in ("hunk", "file") and not self.diff.selects
            begin = self.diff.cursor if self.diff.has_focus else 0
            if (is_heading or not self.diff.has_focus) and self.diff.go_to_change(begin):
                self.show_diff()
                span = f"{self.svc.pressed} again means this line; j and k choose another"
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
        self.svc.outbox.act(endpoint, body, about=self.repo.full_name, id=self.repo.id, n=n, **path)


def _ask_to_apply(proposal: Proposal, thread: Thread) -> str:
    """Returns the question whether a suggestion is to be sealed. It says what becomes of which lines."""
    at, text = thread.place, thread.suggestion.text if thread.suggestion is not None else ""
    new = count(text.count("\n") + 1, "new line") if text else "nothing"
    lines = "these lines"
    if at is not None:
        numbers = f"line {at.start}" if at.start == at.end else f"lines {at.start} to {at.end}"
        lines = f"{numbers} of {at.path}"
    return f"Make a seal on {proposal.head} with the suggestion? It puts {new} in the place of {lines}."


def name_lines(span: Span) -> str:
    """Returns the numbers of lines in words, such as `lines 2 to 4`."""
    return f"line {span.start}" if span.start == span.end else f"lines {span.start} to {span.end}"
