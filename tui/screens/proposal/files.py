"""The changes of a proposal: files and lines against its base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from textual.app import ComposeResult

from localstore.core.endpoint import Endpoint
from localstore.core.model.collaboration import thread as threads
from localstore.core.model.collaboration.proposal import Proposal
from localstore.core.model.collaboration.thread import State, Thread, ThreadComment, ThreadCreate, ThreadPatch
from localstore.core.model.history import Compare
from localstore.core.model.repo import Repo
from tui import reads
from tui.actions import Action
from tui.screens.base import Base
from tui.screens.code.differing import DIFF_ACTIONS, Differing
from tui.text import Part, ago, safe, wrapped
from tui.widgets.diff import Diff, Key, Spot
from tui.widgets.lines import Item


class Note(NamedTuple):
    """A row of a thread under its lines."""

    thread: str
    row: int


def _action(id: str, key: str, label: str, command: str, right: str) -> Action:
    return Action(id, (key,), label, f"svc pr {command}", "signed_in", True, right)


_ON = "comment {n} --path FILE --line A"
_ACTIONS = (
    _action("comment", "c", "comment on the line", f"{_ON} -b TEXT", "thread.create"),
    _action(
        "suggest",
        "x",
        "suggest another line",
        f"{_ON} --suggest TEXT",
        "thread.create",
    ),
    _action("resolve", "z", "resolve or reopen", "resolve {n} ID", "thread.resolve"),
    _action("apply", "a", "apply suggestion", "apply {n} ID", "suggestion.prepare"),
)


class Files(Differing, Base):
    ACTIONS: tuple[Action, ...] = (*DIFF_ACTIONS, *_ACTIONS)

    def __init__(self, repo: Repo, one: Proposal, path: str = "") -> None:
        super().__init__()
        self.repo, self._one, self._path = repo, one, path
        self._count = 0
        self._threads: list[Thread] = []

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, self._one.author.handle == self.svc.client.account

    def facts(self) -> dict[str, str]:
        return {"pr": str(self._one.number)}

    def content(self) -> ComposeResult:
        yield Diff(id="diff")

    def title_parts(self) -> Sequence[Part]:
        files = f"{self._count} file{'' if self._count == 1 else 's'}  "
        named = f" {safe(self.repo.full_name)} #{self._one.number} files"
        return ((named, "title"), (f"  {files}", "dim"), (safe(self._one.title), "text"))

    def on_mount(self) -> None:
        super().on_mount()
        self.do_refresh()

    def do_refresh(self) -> None:
        one = self._one
        self.svc.load(reads.changes(self.repo.id, one.base_seal, one.head_seal), self._paint)
        self.svc.load(reads.threads(self.repo.id, one.number), self._paint_threads)

    def _paint(self, found: Compare, at: float) -> None:
        self._count = len(found.files)
        self.diff.show_files(found.files)
        self.diff.find(lambda item: item.key == Key(self._path, "file", 0, 0), 1)
        self.show_frame()

    def _paint_threads(self, found: list[Thread], at: float) -> None:
        self._threads = found
        self.diff.show_notes(notes(found, max(20, self.size.width - 16), self.svc.clock()))

    @property
    def diff(self) -> Diff:
        return self.query_one("#diff", Diff)

    def tell(self, text: str) -> None:
        self.say(text, "dim")

    # --- comments on lines

    def do_comment(self) -> None:
        if isinstance(self.diff.key, Note):
            thread = self.diff.key.thread
            self.ask("answer", lambda text: self._answer(thread, text))
        elif (spot := self._spot()) is not None:
            self.ask(f"comment on line {spot.line}", lambda text: self._begin(spot, text, None))

    def do_suggest(self) -> None:
        spot = self._spot()
        if spot is None or spot.side == "old":
            self.say("only lines as they are after the change can be suggested otherwise", "warn")
            return
        self.ask(
            f"in the place of line {spot.line}",
            lambda text: self._begin(spot, "I suggest another line", text),
            value=self.diff.item.left[-1][0] if self.diff.item else "",
        )

    def _thread(self) -> Thread | None:
        key = self.diff.key
        one = next((it for it in self._threads if isinstance(key, Note) and it.id == key.thread), None)
        if one is None:
            self.say("go to a comment first", "warn")
        return one

    def do_apply(self) -> None:
        """Seal the suggested lines onto the branch of the proposal."""
        one = self._thread()
        if one is None:
            return
        if one.suggestion is None or one.suggestion.applied_seal:
            self.say("it suggests no lines" if one.suggestion is None else "these lines are applied", "warn")
            return
        words = ["pr", "apply", str(self._one.number), one.id, "-R", self.repo.full_name]
        self.confirm("seal the suggested lines onto the branch? y", lambda: self.svc.run_words(words))

    def do_resolve(self) -> None:
        one = self._thread()
        if one is None:
            return
        state: State = "resolved" if one.state == "open" else "open"
        self._send(threads.UPDATE, ThreadPatch(state=state), thread=one.id)

    def _spot(self) -> Spot | None:
        key = self.diff.key
        if not isinstance(key, Key) or key.kind in ("file", "hunk"):
            self.say("go to a line first", "warn")
            return None
        return Spot(key.path, "new", key.new) if key.new else Spot(key.path, "old", key.old)

    def _begin(self, spot: Spot, text: str, suggestion: str | None) -> None:
        if not text.strip():
            return
        body = ThreadCreate(
            path=spot.path,
            start=spot.line,
            end=spot.line,
            side=spot.side,
            seal_id=self._one.head_seal,
            body=text.strip(),
            suggestion=suggestion,
        )
        self._send(threads.CREATE, body)

    def _answer(self, thread: str, text: str) -> None:
        if text.strip():
            self._send(threads.COMMENT, ThreadComment(body=text.strip()), thread=thread)

    def _send(self, endpoint: Endpoint[Any], body: Any, **path: str) -> None:
        n = str(self._one.number)
        self.svc.act(endpoint, body, about=self.repo.full_name, id=self.repo.id, n=n, **path)


def notes(found: Sequence[Thread], width: int, now: float) -> dict[Spot, list[Item]]:
    """What was said, by the last line that it is about."""
    made: dict[Spot, list[Item]] = {}
    for one in found:
        at = one.place
        if at is None:
            continue
        state: str = "waits for your review" if one.draft else one.state
        state += "" if at.how == "same" else f", {at.how}"
        rows: list[tuple[Part, ...]] = [((f"{'':>12}┌ {state}", "accent"),)]
        if one.suggestion is not None:
            for line in one.suggestion.text.split("\n"):
                rows.append(((f"{'':>12}│ ", "accent"), (f"+ {safe(line)}", "add")))
        for said in one.comments if one.state == "open" else ():
            who = f"@{safe(said.author.handle or '?')} "
            rows.append(((f"{'':>12}│ ", "accent"), (who, "person"), (ago(said.created_at, now), "dim")))
            rows += [((f"{'':>12}│ ", "accent"), (line, "text")) for line in wrapped(said.body, width)]
        items = [Item(Note(one.id, row), parts) for row, parts in enumerate(rows)]
        made.setdefault(Spot(at.path, one.side, at.end), []).extend(items)
    return made
